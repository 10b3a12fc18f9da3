import keras
import numpy as np
from keras import layers

EPOCHS = 12


class Patches(keras.utils.PyDataset):
    def __init__(self, images, **kwargs):
        super().__init__(workers=2, use_multiprocessing=True, max_queue_size=4, **kwargs)
        self.images = images

    def __len__(self):
        return 24

    def __getitem__(self, index):
        part = self.images[index * 32:(index + 1) * 32]
        return np.flip(part, axis=2), part.mean(axis=(1, 2, 3))


def main():
    images = np.random.default_rng(2).random((768, 32, 32, 3), dtype=np.float32)
    model = keras.Sequential([keras.Input((32, 32, 3)), layers.Conv2D(8, 3, activation="relu"),
                              layers.GlobalAveragePooling2D(), layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    model.fit(Patches(images), epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
