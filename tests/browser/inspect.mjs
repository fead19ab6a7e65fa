// What is looked at from inside the page. The function is sent to the browser as text, so it stands alone.

/**
 * Opens what can be opened, waits for pictures and fonts, and gives findings as `[kind, sentence]`.
 *
 * Contrast follows WCAG 2.2: with relative luminances $l_1 \ge l_2$ of text and ground, $(l_1 + 0.05) / (l_2 + 0.05)$ must
 * reach 4.5, or 3 for large text (24 px, or 18.66 px bold).
 */
export async function inspect({ width, texts, images }) {
  const findings = [];
  const find = (kind, text) => findings.push([kind, text]);
  const short = (text, most = 60) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const squeeze = (text) => text.replace(/\s+/g, " ").trim();
  const name = (element) => {
    const classes = [...element.classList].map((one) => `.${one}`).join("");
    return `<${element.localName}${element.id ? `#${element.id}` : ""}${classes}>`;
  };

  // Closed parts must be as sound as open ones, and so must pictures that would load late.
  for (const part of document.querySelectorAll("details")) part.open = true;
  const pictures = [...document.images];
  for (const picture of pictures) picture.loading = "eager";
  await Promise.all(pictures.map((picture) => picture.decode().catch(() => {})));
  await document.fonts.ready;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  if (document.title.trim() === "") find("title", "the page has no title");

  const scripts = document.querySelectorAll("script");
  if (scripts.length > 0) {
    find("script", `${scripts.length} script element(s) in a page that has none of its own; the first: ${short(scripts[0].outerHTML, 100)}`);
  }
  for (const element of document.querySelectorAll("*")) {
    for (const { name: attribute, value } of element.attributes) {
      const runs = /^on/i.test(attribute) || (/^(href|src|action|formaction|xlink:href)$/i.test(attribute) && /^\s*javascript:/i.test(value));
      if (runs) find("script", `${name(element)} runs a script by its attribute ${attribute}="${short(value)}"`);
    }
  }

  // Legend keys are smaller than this; only a chart counts.
  const charts = [...document.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width >= 100);
  const isDrawn = (shape) => {
    const { fill, stroke, visibility, display } = getComputedStyle(shape);
    if (visibility !== "visible" || display === "none" || (fill === "none" && stroke === "none")) return false;
    return shape.getTotalLength() > 0;
  };
  // A curve of a single epoch is a dot.
  if (!charts.some((svg) => [...svg.querySelectorAll("path, circle")].some(isDrawn))) {
    find("chart", `no chart is drawn: ${charts.length} <svg> of at least 100 px, none with a path that has a length`);
  }

  for (const picture of pictures) {
    if (!picture.complete || picture.naturalWidth === 0) {
      find("picture", `a picture cannot be shown: alt "${short(picture.alt)}", src ${short(picture.getAttribute("src") ?? "(none)")}`);
    }
  }
  if (pictures.length < images) find("pictures", `${pictures.length} pictures, expected at least ${images}`);

  const shown = squeeze(document.body.innerText);
  for (const text of texts) {
    if (!shown.includes(squeeze(text))) find("text", `the text "${text}" is not shown`);
  }

  // The width asked for, not that of the window: a phone widens its window to what does not fit.
  const wide = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
  if (wide > width) {
    const scrolls = (element) => {
      for (let above = element.parentElement; above && above !== document.body; above = above.parentElement) {
        if (getComputedStyle(above).overflowX !== "visible") return true;
      }
      return false;
    };
    const reach = (element) => element.getBoundingClientRect().right + window.scrollX;
    const beyond = [...document.body.querySelectorAll("*")].filter((element) => reach(element) > width + 0.5 && !scrolls(element));
    const furthest = beyond.sort((a, b) => reach(b) - reach(a))[0];
    const culprit = furthest ? `; ${name(furthest)} reaches to ${Math.round(reach(furthest))} px` : "";
    find("width", `the page is ${wide} px wide in a window of ${width} px${culprit}`);
  }

  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  // Any way to write a colour, as red, green, blue and opacity from 0 to 1.
  const read = (colour) => {
    if (!known.has(colour)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
      known.set(colour, [...pen.getImageData(0, 0, 1, 1).data].map((part) => part / 255));
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((part, at) => part * a + below[at] * (1 - a));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const probe = document.createElement("i");
  probe.style.color = "Canvas";
  document.body.append(probe);
  const paper = read(getComputedStyle(probe).color);
  probe.remove();
  // What lies behind an element, or nothing where a picture does.
  const ground = (element) => {
    const layers = [];
    for (let above = element; above; above = above.parentElement) {
      const { backgroundColor, backgroundImage } = getComputedStyle(above);
      if (backgroundImage !== "none") return null;
      const colour = read(backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reduceRight((below, layer) => over(layer, below), paper.slice(0, 3));
  };
  const faint = new Map();
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const text = squeeze(words.currentNode.data);
    const element = words.currentNode.parentElement;
    const box = element.getBoundingClientRect();
    if (text === "" || box.width === 0 || box.height === 0 || !element.checkVisibility({ visibilityProperty: true })) continue;
    const below = ground(element);
    if (below === null) continue;
    const style = getComputedStyle(element);
    const colour = over(read(element.closest("svg") ? style.fill : style.color), below);
    const [light, dark] = [luminance(colour), luminance(below)].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const key = name(element);
    if (contrast < least && !(faint.get(key)?.contrast <= contrast)) faint.set(key, { contrast, least, text });
  }
  for (const [element, { contrast, least, text }] of faint) {
    find("contrast", `${element} "${short(text, 30)}" has a contrast of ${contrast.toFixed(2)}, less than ${least}`);
  }
  return findings;
}
