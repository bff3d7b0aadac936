"""Sound files: what is read, what is refused, and cepstra against their definition."""

import sys

import numpy as np
import pytest
import soundfile
from numpy.testing import assert_allclose, assert_array_equal
from scipy.fft import dct
from sounds import RATE, tone

from orbitpool.speech import Recording, mfcc, read_audio


def by_the_definition(samples):
    """Kaldi's cepstra written out in float64 from their definition, (T, 13), with nothing of the library in it."""
    x, length, shift, size = samples.astype(np.float64) * 32768, 400, 160, 512
    count = (len(x) + shift // 2) // shift
    places = np.arange(count)[:, None] * shift + shift // 2 - length // 2 + np.arange(length)
    period = np.concatenate(
        [np.arange(len(x)), np.arange(len(x))[::-1]]
    )  # sound reflected at its ends, again and again
    frames = x[period[places % len(period)]]
    frames = frames - frames.mean(1, keepdims=True)
    frames = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    frames *= (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))) ** 0.85
    power = np.abs(np.fft.rfft(frames, size)[:, :-1]) ** 2
    mel = lambda f: 1127 * np.log(1 + f / 700)  # noqa: E731
    corners = np.linspace(mel(20), mel(RATE / 2), 25)
    at = mel(np.arange(size // 2) * RATE / size)
    left, centre, right = (corners[i : i + 23, None] for i in range(3))
    bank = np.clip(np.minimum((at - left) / (centre - left), (right - at) / (right - centre)), 0, None)
    energies = np.log(np.maximum(power @ bank.T, np.finfo(np.float32).eps))
    return dct(energies, norm="ortho")[:, :13] * (1 + 11 * np.sin(np.pi * np.arange(13) / 22))


def slopes(frames):
    """Each frame's slope by least squares through five frames, with the end frames repeated."""
    padded = np.pad(frames, ((2, 2), (0, 0)), mode="edge")
    return np.stack([np.polyfit(np.arange(-2, 3), padded[t : t + 5], 1)[0] for t in range(len(frames))])


@pytest.mark.parametrize("seconds", [0.02, 0.5, 1.2345])
def test_cepstra_equal_their_definition_to_a_thousandth(seconds):
    samples = tone(seconds, 200, 3000, seed=0)
    frames = mfcc(samples)
    assert frames.shape == (round(seconds * 100 + 1e-6), 39)
    expected = by_the_definition(samples)
    assert np.abs(expected).max() > 10
    assert_allclose(frames[:, :13], expected, atol=1e-3)
    assert_allclose(frames[:, 13:26], slopes(expected), atol=1e-3)
    assert_allclose(frames[:, 26:], slopes(slopes(expected)), atol=1e-3)


def test_cepstra_of_real_speech_equal_their_definition(sample):
    for path in sorted(sample.glob("*/sx*.wav"))[::10]:
        samples = read_audio(path)
        assert_allclose(mfcc(samples)[:, :13], by_the_definition(samples), atol=2e-3)


def test_riff_sphere_and_flac_hold_the_same_samples(write):
    samples = tone(0.3, 200, 3000, seed=1)
    expected = (samples * 32768).round() / 32768
    for name, options in (("a.wav", {}), ("a.sph", {"format": "NIST", "subtype": "PCM_16"}), ("a.flac", {})):
        assert_allclose(read_audio(write(name, samples, **options)), expected, atol=1.1 / 32768)


def test_real_sphere_and_riff_files_are_equal(sample):
    paths = sorted(sample.glob("*/*.sph"))
    assert len(paths) == 12
    for path in paths:
        assert_array_equal(read_audio(path), read_audio(path.with_suffix(".wav")))


def test_channels_are_averaged_and_fast_sampling_is_brought_down(write):
    t = np.arange(48_000) / 48_000
    left, right = np.sin(2 * np.pi * 440 * t), np.sin(2 * np.pi * 1000 * t)
    sound = read_audio(write("a.wav", 0.5 * np.stack([left, right], axis=1), rate=48_000))
    assert sound.shape == (16_000,)
    assert_allclose(sound[500:-500], (0.25 * (left + right))[::3][500:-500], atol=1e-3)


def cut(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    return path


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda write: cut(write("a.wav", tone(1, 200, 300, 0)), 9000), "a.wav is truncated: 23044 bytes are missing"),
        (
            lambda write: cut(write("a.sph", tone(1, 200, 300, 0), format="NIST", subtype="PCM_16"), 9024),
            "a.sph is truncated: 12000 samples are missing",
        ),
        (lambda write: cut(write("a.flac", tone(1, 200, 300, 0)), 9000), "a.flac cannot be read as sound"),
        (lambda write: cut(write("a.wav", tone(1, 200, 300, 0)), 0), "a.wav cannot be read as sound"),
        (lambda write: write("a.wav", np.zeros(0)), "a.wav holds no sound"),
        (lambda write: write("a.wav", np.full(900, np.nan), subtype="FLOAT"), "a.wav has a sample of nan"),
        (lambda write: write("a.wav", tone(1, 200, 300, 0), rate=8000), "a.wav has 8000 samples a second; 16000"),
        (lambda write: write("a.wav", np.zeros(70)), "a.wav: 70 samples make no frame; give at least 5 ms"),
    ],
)
def test_files_that_hold_too_little_are_refused_by_name(make, says, write):
    with pytest.raises(ValueError, match=says):
        Recording.read(make(write))


def test_shortened_files_are_refused_with_the_way_out(write):
    path = write("a.sph", tone(0.1, 200, 300, 0), format="NIST", subtype="PCM_16")
    shortened = path.read_bytes().replace(b"sample_coding -s3 pcm", b"sample_coding -s26 pcm,embedded-shorten-v2.00")
    path.write_bytes(shortened)
    with pytest.raises(ValueError, match=r"a\.sph is compressed by shorten.*; sph2pipe -f wav a\.sph converts"):
        read_audio(path)


def test_without_the_extra_the_error_says_what_to_install(write, monkeypatch):
    path = write("a.wav", tone(0.1, 200, 300, 0))
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(ImportError, match=r"sound needs soundfile.*pip install -c constraints.txt '.\[speech\]'"):
        read_audio(path)


def test_formats_that_do_not_tell_whether_they_are_whole_are_refused(tmp_path):
    soundfile.write(tmp_path / "a.aiff", np.zeros(1000), 16_000)
    with pytest.raises(ValueError, match=r"the format of .*a.aiff is 'AIFF'; choose one of 'WAV'"):
        read_audio(tmp_path / "a.aiff")
