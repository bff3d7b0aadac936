"""SpeechFeatures: frames, patches, parts of segments, and the scikit-learn way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

import orbitpool
from orbitpool import TIOMP, TIRBM, LinearSVM, ModelFileError, SpeechFeatures, TIAutoencoder, modelfile
from orbitpool import transforms as T
from orbitpool.speech import Recording, Segment
from orbitpool.speech.features import patches_of
from orbitpool.speech.parts import pool

SHIFTS = T.time_shifts(11, 9)
RBM = TIRBM(8, SHIFTS, visible="gaussian", two_sided=True, learning_rate=0.005, n_iter=2)


def counting(length):
    """A recording whose frame t holds t in every coefficient."""
    return Recording("count", np.repeat(np.arange(length, dtype=np.float32)[:, None], 39, 1), length / 100)


def test_parts_are_tenths_and_the_surroundings_of_boundaries():
    """Frame t is centred at (t + 1/2) / 100 s; a segment from 0.2 to 0.4 s holds frames 20 to 39."""
    features = np.arange(60.0)[:, None] * [1, 2]
    (row,) = pool(features, [Segment(counting(60), 0.2, 0.4)])
    middle = lambda first, last: (first + last) / 2  # noqa: E731
    parts = [middle(20, 25), middle(26, 33), middle(34, 39), middle(18, 21), middle(38, 41)]
    assert_allclose(row[:-1], np.ravel([[part, 2 * part] for part in parts]), rtol=1e-6)
    assert row[-1] == pytest.approx(np.log(0.2))


def test_parts_without_a_frame_take_the_nearest_and_parts_beyond_the_ends_are_cut():
    features = np.arange(10.0)[:, None]
    tiny, whole = pool(features, [Segment(counting(10), 0.051, 0.053), Segment(counting(10), 0.0, 0.1)])
    assert_allclose(tiny[:3], 5)
    assert_allclose(whole[:5], [1, 4.5, 8, 0.5, 8.5])


def test_patches_repeat_the_end_frames():
    frames = np.arange(12, dtype=np.float32).reshape(4, 3)
    patches = patches_of(frames, 5)
    assert patches.shape == (4, 15)
    assert_array_equal(patches[0].reshape(5, 3), frames[[0, 0, 0, 1, 2]])
    assert_array_equal(patches[2].reshape(5, 3), frames[[0, 1, 2, 3, 3]])
    assert_array_equal(patches_of(frames, 5, [2]), patches[[2]])


@pytest.mark.parametrize("normalize", ["global", "speaker"])
@pytest.mark.parametrize(
    "learner",
    [RBM, TIAutoencoder(6, SHIFTS, decoder="linear", learning_rate=0.01, n_iter=1), TIOMP(6, n_iter=1)],
    ids=str,
)
def test_features_are_those_made_by_hand(learner, normalize, recordings, labelled):
    """Frame by frame: standardise, stack eleven, encode; then average over parts."""
    segments, _ = labelled
    features = SpeechFeatures(learner, normalize=normalize, with_mfcc=True, random_state=0).fit(segments)
    Z = features.transform(segments)
    assert Z.shape == (len(segments), len(features.get_feature_names_out()))
    for i in (0, 7, 39):
        own = segments[i].recording
        among = [r for r in recordings if normalize == "global" or r.speaker == own.speaker]
        stacked = np.concatenate([r.frames for r in among])
        frames = (own.frames - stacked.mean(0)) / stacked.std(0)
        padded = np.pad(frames, ((5, 5), (0, 0)), mode="edge")
        patches = np.stack([padded[t : t + 11].ravel() for t in range(len(frames))])
        encoded = np.concatenate([features.learner_.transform(patches), frames], axis=1)
        assert_allclose(Z[i], pool(encoded, [segments[i]])[0], atol=1e-4)


def test_cepstra_alone_need_no_learner(labelled):
    segments, _ = labelled
    Z = SpeechFeatures().fit_transform(segments)
    assert Z.shape == (40, 5 * 39 + 1)
    assert abs(Z[:, :39].mean()) < 0.5


def test_a_recording_without_a_speaker_is_a_speaker_of_its_own(recordings):
    alone = [Recording(r.name, r.frames, r.seconds) for r in recordings]
    segments = [Segment(r, 0.1, 0.4) for r in alone]
    features = SpeechFeatures(normalize="speaker").fit(segments)
    assert_allclose(features.transform(segments)[3], features.transform(segments[3:4])[0], atol=1e-5)


def test_it_works_in_a_pipeline_with_folds_of_speakers(labelled):
    segments, labels = labelled
    model = make_pipeline(SpeechFeatures(RBM, random_state=0), LinearSVM(C=0.01, standardize=True))
    speakers = [s.recording.name for s in segments]
    scores = cross_val_score(clone(model), segments, np.array(labels), groups=speakers, cv=GroupKFold(4))
    assert scores.mean() > 0.9
    model.set_params(speechfeatures__learner__n_components=3).fit(segments, labels)
    assert model[0].transform(segments).shape == (40, 5 * 6 + 1)


def test_few_patches_and_seeds(labelled):
    segments, _ = labelled
    make = lambda seed, n: SpeechFeatures(RBM, n_patches=n, random_state=seed).fit(segments)  # noqa: E731
    assert_array_equal(make(0, 50).learner_.components_, make(0, 50).learner_.components_)
    assert np.abs(make(0, 50).learner_.components_ - make(1, 50).learner_.components_).max() > 1e-3


@pytest.mark.parametrize("learner", [RBM, None])
def test_a_loaded_model_is_the_saved_one(learner, labelled, tmp_path):
    segments, _ = labelled
    model = SpeechFeatures(learner, with_mfcc=True, random_state=0).fit(segments)
    model.save(tmp_path / "model")
    twin = orbitpool.load(tmp_path / "model")
    assert isinstance(twin, SpeechFeatures)
    assert_array_equal(twin.transform(segments), model.transform(segments))
    assert twin.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert twin.with_mfcc is True
    content, tensors = modelfile.read(tmp_path / "model")
    del tensors["mean_"]
    modelfile.write(tmp_path / "model", content, tensors)
    with pytest.raises(ModelFileError, match="is not a model that this version understands: KeyError"):
        orbitpool.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SpeechFeatures("TIRBM"), "learner is 'TIRBM'; give a TIRBM"),
        (lambda: SpeechFeatures(TIRBM(4, T.time_shifts(9, 7))), "frames is 11, but .* acts on others"),
        (lambda: SpeechFeatures(TIRBM(4, T.translations(11, 9))), "frames is 11, but"),
        (lambda: SpeechFeatures(frames=0), "frames is 0"),
        (lambda: SpeechFeatures(normalize="utterance"), "normalize is 'utterance'; choose one of 'global', 'speaker'"),
    ],
)
def test_bad_parameters_are_refused(make, says, labelled):
    with pytest.raises(ValueError, match=says):
        make().fit(labelled[0])


def test_bad_segments_are_refused(recordings):
    good = Segment(recordings[0], 0.1, 0.2)
    for bad, says in (
        ([], "X holds 0 segments"),
        ([good, (1, 2)], r"X\[1\] is \(1, 2\); give speech.Segment"),
        ([good._replace(end=0.1)], r"X\[0\]: the segment goes from 0.1 s to 0.1 s"),
        ([good, good._replace(end=1.3)], r"X\[1\]: the segment goes from 0.1 s to 1.3 s, but .*0.wav ends at 1.25 s"),
    ):
        with pytest.raises(ValueError, match=says):
            SpeechFeatures().fit(bad)


def test_recordings_that_no_patch_is_drawn_from_do_no_harm(labelled):
    segments, _ = labelled
    model = SpeechFeatures(TIRBM(2, visible="gaussian", n_iter=1), n_patches=1, random_state=0).fit(segments)
    assert np.isfinite(model.transform(segments)).all()
