"""The 61 phones of TIMIT and the 39 classes that they are folded to (Lee & Hon, 1989)."""

from __future__ import annotations

# Each class with the symbols that are folded into it besides its own; `sil` is no symbol of TIMIT.
_FOLDED = {
    "aa": ("ao",),
    "ah": ("ax", "ax-h"),
    "er": ("axr",),
    "hh": ("hv",),
    "ih": ("ix",),
    "l": ("el",),
    "m": ("em",),
    "n": ("en", "nx"),
    "ng": ("eng",),
    "sh": ("zh",),
    "sil": ("pcl", "tcl", "kcl", "bcl", "dcl", "gcl", "h#", "pau", "epi"),
    "uw": ("ux",),
}
_ALONE = "ae aw ay b ch d dh dx eh ey f g iy jh k ow oy p r s t th uh v w y z"
DROPPED = "q"  # the glottal stop, left out as is usual

FOLD: dict[str, str] = {
    **{phone: phone for phone in _ALONE.split()},
    **{phone: phone for phone in _FOLDED if phone != "sil"},
    **{phone: name for name, members in _FOLDED.items() for phone in members},
}
PHONES = tuple(sorted([*FOLD, DROPPED]))  # 61
CLASSES = tuple(sorted(set(FOLD.values())))  # 39
