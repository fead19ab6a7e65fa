"""Writes the small ONNX files beside this file, and onnx.json with what PyTorch says of them.

    python small_networks.py        (needs: pip install torch onnx onnxscript)

pictures.onnx takes one picture of 8 x 10 pixels (fixed) and has two outputs: its features and a map before them. tokens.onnx takes input_ids and
attention_mask of any length, and gives a row for each token.
"""
import json
import pathlib

import torch
from torch import nn

HERE = pathlib.Path(__file__).parent


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6), nn.Linear(6, 5)

    def forward(self, pixels):
        image = torch.relu(self.norm(self.conv(pixels)))
        return self.head(image.mean((2, 3))), image


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(12, 8), nn.Linear(8, 4)

    def forward(self, input_ids, attention_mask):
        weight = torch.softmax(attention_mask.float(), 1)[..., None]
        return torch.tanh(self.head(self.words(input_ids) * weight))


def export(network, example, name, inputs, outputs, axes):
    torch.onnx.export(network, example, HERE / name, dynamo=False, opset_version=17, input_names=inputs, output_names=outputs, dynamic_axes=axes)


def main():
    torch.manual_seed(5)
    pictures, tokens = Pictures().eval(), Tokens().eval()
    pixels = torch.arange(8 * 10 * 3).reshape(8, 10, 3) * 7 % 256
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    picture = ((pixels / 255 - mean) / deviation).permute(2, 0, 1)[None]
    ids = torch.tensor([[2, 7, 4, 5, 6, 3]])
    with torch.inference_mode():
        features, image = pictures(picture)
        rows = tokens(ids, torch.ones_like(ids))
    export(pictures, (picture,), "pictures.onnx", ["pixels"], ["features", "map"], None)
    free = {0: "texts", 1: "tokens"}
    export(tokens, (ids, torch.ones_like(ids)), "tokens.onnx", ["input_ids", "attention_mask"], ["states"], {"input_ids": free, "attention_mask": free, "states": free})
    wanted = {"features": features[0], "map": image.mean((2, 3))[0], "states": rows.mean(1)[0]}
    (HERE / "onnx.json").write_text(json.dumps({name: [round(float(x), 7) for x in row] for name, row in wanted.items()}) + "\n")


main()
