"""The list of futures keeps every result until all work is over.
agronholm/pythonfutures#77
Computes spectra of recordings in a thread pool and consumes them in the order in which they finish."""
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np


def spectrum(number):
    rng = np.random.default_rng(number)
    signal = rng.standard_normal(60_000)
    power = np.abs(np.fft.rfft(signal))
    smooth = np.convolve(power, np.ones(200) / 200, mode="same")
    return number, smooth


def main():
    peaks = {}
    with ThreadPoolExecutor(max_workers=1) as pool:
        futures = [pool.submit(spectrum, number) for number in range(600)]
        for future in as_completed(futures):
            number, power = future.result()
            peaks[number] = int(power.argmax())
            del power
            if len(peaks) % 20 == 0:
                print(f"done {len(peaks)}", flush=True)
    print(sum(peaks.values()))


if __name__ == "__main__":
    main()
