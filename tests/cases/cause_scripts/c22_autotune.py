import time

import keras
import tensorflow as tf
from keras import layers

EPOCHS = 14


def decode(index):
    image = tf.random.stateless_uniform((512, 512, 3), seed=[1, index])
    return image, tf.reduce_mean(image)


class Pause(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.03)


def main():
    data = tf.data.Dataset.range(40).map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(2)
    data = data.prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential([keras.Input((512, 512, 3)), layers.AveragePooling2D(32), layers.Flatten(), layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(data, epochs=EPOCHS, verbose=2, callbacks=[Pause()])


if __name__ == "__main__":
    main()
