//! The table of known datasets.

use super::{Entry, Form, How, Piece};
use Piece::{File, Folder, Sized};

const CIFAR10: &[Form] = &[Form {
    name: "official binary",
    folders: &["cifar10", "cifar-10-batches-bin"],
    pieces: &[
        Sized("data_batch_1.bin", 30_730_000),
        Sized("data_batch_2.bin", 30_730_000),
        Sized("data_batch_3.bin", 30_730_000),
        Sized("data_batch_4.bin", 30_730_000),
        Sized("data_batch_5.bin", 30_730_000),
        Sized("test_batch.bin", 30_730_000),
    ],
}];

const CIFAR100: &[Form] = &[
    Form {
        name: "official binary",
        folders: &["cifar100", "cifar-100-binary"],
        pieces: &[Sized("train.bin", 153_700_000), Sized("test.bin", 30_740_000)],
    },
    Form {
        name: "packed strips",
        folders: &["cifar100"],
        pieces: &[
            File("train.webpstrips"),
            Sized("train.labels", 100_000),
            File("test.webpstrips"),
            Sized("test.labels", 20_000),
        ],
    },
];

const CIFAR10N: &[Form] =
    &[Form { name: "label table", folders: &["cifar-n"], pieces: &[Sized("cifar10n_labels.npy", 300_128)] }];

const CIFAR100N: &[Form] =
    &[Form { name: "label table", folders: &["cifar-n"], pieces: &[Sized("cifar100n_labels.npy", 200_128)] }];

const ANIMAL10N: &[Form] = &[
    Form {
        name: "binary",
        folders: &["animal10n"],
        // record = id (4 bytes), label (4 bytes), 3 x 64 x 64 values
        pieces: &[Sized("data_batch_1.bin", 614_800_000), Sized("test_batch.bin", 61_480_000)],
    },
    Form { name: "JPEG folders", folders: &["animal10n"], pieces: &[Folder("training"), Folder("testing")] },
];

const WEBVISION: &[Form] = &[Form {
    name: "version 1.0",
    folders: &["webvision"],
    pieces: &[
        File("info/train_filelist_google.txt"),
        File("info/val_filelist.txt"),
        Folder("google"),
        Folder("val_images_256"),
    ],
}];

const ILSVRC12: &[Form] = &[Form {
    name: "validation, one folder per class",
    folders: &["ilsvrc12"],
    // the first and the last of mini-WebVision's 50 classes stand for all of them
    pieces: &[Folder("val/n01440764"), Folder("val/n01697457")],
}];

const MNIST: &[Form] = &[
    Form {
        name: "IDX",
        folders: &["mnist"],
        pieces: &[
            Sized("train-images-idx3-ubyte", 47_040_016),
            Sized("train-labels-idx1-ubyte", 60_008),
            Sized("t10k-images-idx3-ubyte", 7_840_016),
            Sized("t10k-labels-idx1-ubyte", 10_008),
        ],
    },
    Form {
        name: "IDX, gzip",
        folders: &["mnist"],
        pieces: &[
            File("train-images-idx3-ubyte.gz"),
            File("train-labels-idx1-ubyte.gz"),
            File("t10k-images-idx3-ubyte.gz"),
            File("t10k-labels-idx1-ubyte.gz"),
        ],
    },
];

const FASHION: &[Form] = &[
    Form { name: "IDX", folders: &["fashion-mnist"], pieces: MNIST[0].pieces },
    // the second is where Debian's package puts it; an absolute folder stands for itself
    Form {
        name: "IDX, gzip",
        folders: &["fashion-mnist", "/usr/share/datasets/fashion-mnist"],
        pieces: MNIST[1].pieces,
    },
];

const EMBEDDINGS10: &[Form] = &[Form {
    name: "npy",
    folders: &["embeddings"],
    pieces: &[Sized("cifar10_efflite0_pca128.npy", 15_360_128), Sized("cifar10_labels.npy", 60_128)],
}];

const EMBEDDINGS100: &[Form] = &[Form {
    name: "npy",
    folders: &["embeddings"],
    pieces: &[Sized("cifar100_efflite0_pca128.npy", 15_360_128), Sized("cifar100_labels.npy", 60_128)],
}];

const EFFICIENTNET_LITE0: &[Form] = &[Form {
    name: "PyTorch",
    folders: &["efficientnet-lite0"],
    pieces: &[Sized("efficientnet-lite0-57934424.pth", 18_826_032), Sized("LICENSE", 586)],
}];

const MINILM: &[Form] = &[Form {
    name: "safetensors",
    folders: &["minilm"],
    pieces: &[
        Sized("model.safetensors", 90_868_376),
        Sized("tokenizer.json", 466_247),
        Sized("config.json", 612),
        Sized("sentence_bert_config.json", 53),
        Sized("README.md", 10_454),
        Sized("LICENSE", 1061),
    ],
}];

const OWN_FEATURES: How = How::ByHand {
    source: "no public address has them: EfficientNet-Lite0 features of the images at 128 x 128, on their 128 leading \
             principal directions; any features of your own do as well",
    put: "embeddings/<set>_efflite0_pca128.npy, f16 (60000, 128), training rows first, in official order\n\
          embeddings/<set>_labels.npy, u8 (60000), true labels",
};

/// Every dataset known by name, and weights of encoders, which have no classes.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "fashion-mnist-subset",
        title: "Fashion-MNIST, built-in class-balanced subset",
        classes: 10,
        train: 10_000,
        test: 2_000,
        how: How::Embedded,
        licence: "MIT",
        forms: &[],
    },
    Entry {
        name: "fashion-mnist",
        title: "Fashion-MNIST, clothes, grey 28 x 28",
        classes: 10,
        train: 60_000,
        test: 10_000,
        how: How::Fetch,
        licence: "MIT",
        forms: FASHION,
    },
    Entry {
        name: "mnist",
        title: "MNIST, digits, grey 28 x 28",
        classes: 10,
        train: 60_000,
        test: 10_000,
        how: How::Fetch,
        licence: "CC BY-SA 3.0",
        forms: MNIST,
    },
    Entry {
        name: "cifar10",
        title: "CIFAR-10, colour 32 x 32",
        classes: 10,
        train: 50_000,
        test: 10_000,
        how: How::Fetch,
        licence: "none stated; cite Krizhevsky 2009",
        forms: CIFAR10,
    },
    Entry {
        name: "cifar100",
        title: "CIFAR-100, colour 32 x 32, 20 groups of 5 classes",
        classes: 100,
        train: 50_000,
        test: 10_000,
        how: How::Fetch,
        licence: "none stated; cite Krizhevsky 2009",
        forms: CIFAR100,
    },
    Entry {
        name: "cifar10n",
        title: "CIFAR-10N, human labels for CIFAR-10's training images",
        classes: 10,
        train: 50_000,
        test: 0,
        how: How::ByHand {
            source: "https://github.com/UCSC-REAL/cifar-10-100n, file CIFAR-10_human.pt",
            put: "cifar-n/cifar10n_labels.npy, u8 (50000, 6), one row per training image in official order;\n\
                  columns: clean_label, aggre_label, worse_label, random_label1, random_label2, random_label3",
        },
        licence: "CC BY-NC 4.0",
        forms: CIFAR10N,
    },
    Entry {
        name: "cifar100n",
        title: "CIFAR-100N, human labels for CIFAR-100's training images",
        classes: 100,
        train: 50_000,
        test: 0,
        how: How::ByHand {
            source: "https://github.com/UCSC-REAL/cifar-10-100n, file CIFAR-100_human.pt",
            put: "cifar-n/cifar100n_labels.npy, u8 (50000, 4), one row per training image in official order;\n\
                  columns: clean_label, noisy_label, clean_coarse_label, noisy_coarse_label",
        },
        licence: "CC BY-NC 4.0",
        forms: CIFAR100N,
    },
    Entry {
        name: "animal10n",
        title: "Animal-10N, five pairs of look-alike animals, colour 64 x 64",
        classes: 10,
        train: 50_000,
        test: 5_000,
        how: How::ByHand {
            source: "https://dm.kaist.ac.kr/datasets/animal-10n/ (ask for access there)",
            put: "animal10n/data_batch_1.bin and animal10n/test_batch.bin (binary form), or\n\
                  animal10n/training/ and animal10n/testing/ (JPEGs named <label>_<anything>.jpg)",
        },
        licence: "for research, by application",
        forms: ANIMAL10N,
    },
    Entry {
        name: "webvision",
        title: "mini-WebVision: the first 50 classes of WebVision 1.0, Google part",
        classes: 50,
        train: 65_944,
        test: 2_500,
        how: How::ByHand {
            source: "https://data.vision.ee.ethz.ch/cvl/webvision/dataset2017.html (agree to the terms there)",
            put: "webvision/info/train_filelist_google.txt, webvision/info/val_filelist.txt, webvision/info/synsets.txt\n\
                  webvision/google/q0001/ ... (training images)\n\
                  webvision/val_images_256/ (validation images)",
        },
        licence: "for research, by agreement",
        forms: WEBVISION,
    },
    Entry {
        name: "ilsvrc12",
        title: "ILSVRC12 validation, second test set of mini-WebVision",
        classes: 1000,
        train: 0,
        test: 50_000,
        how: How::ByHand {
            source: "https://image-net.org/download-images.php (register and agree to the terms there)",
            put: "ilsvrc12/val/<synset>/ILSVRC2012_val_*.JPEG, one folder per synset (n01440764, ...);\n\
                  the 50 synsets of mini-WebVision are enough",
        },
        licence: "for research, by agreement",
        forms: ILSVRC12,
    },
    Entry {
        name: "cifar10-embeddings",
        title: "CIFAR-10 as frozen EfficientNet-Lite0 features, 128 numbers each",
        classes: 10,
        train: 50_000,
        test: 10_000,
        how: OWN_FEATURES,
        licence: "computed for this project",
        forms: EMBEDDINGS10,
    },
    Entry {
        name: "cifar100-embeddings",
        title: "CIFAR-100 as frozen EfficientNet-Lite0 features, 128 numbers each",
        classes: 100,
        train: 50_000,
        test: 10_000,
        how: OWN_FEATURES,
        licence: "computed for this project",
        forms: EMBEDDINGS100,
    },
    Entry {
        name: "efficientnet-lite0",
        title: "weights of an encoder: pictures to 1,280 numbers",
        classes: 0,
        train: 0,
        test: 0,
        how: How::Fetch,
        licence: "Apache-2.0",
        forms: EFFICIENTNET_LITE0,
    },
    Entry {
        name: "minilm",
        title: "weights of an encoder: English text to 384 numbers (all-MiniLM-L6-v2)",
        classes: 0,
        train: 0,
        test: 0,
        how: How::Fetch,
        licence: "Apache-2.0",
        forms: MINILM,
    },
];
