"""Invented words for the nodes of ProsQA's graphs, different from those of the data set."""

FIRST = ("ba", "cle", "dri", "fo", "gu", "kna", "me", "pli", "tro")
SECOND = ("bi", "cro", "du", "fle", "ga", "lo", "ni", "ve")
CONCEPTS = tuple(f"{first}{second}pus" for second in SECOND for first in FIRST)
PEOPLE = (
    "Ada",
    "Bruno",
    "Clara",
    "Dmitri",
    "Emil",
    "Frida",
    "Gustav",
    "Hanna",
    "Ivo",
    "Jana",
    "Karim",
    "Lena",
    "Milo",
    "Nadia",
    "Otto",
    "Petra",
    "Quentin",
    "Rosa",
    "Sven",
    "Tilda",
)
