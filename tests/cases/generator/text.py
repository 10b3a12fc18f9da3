"""The text of generated programs: names that tell nothing, templates, and lines that are found again by number.

A template is plain Python with three kinds of holes: $name (an identifier, the same one throughout a part), §name (a variable of the run: a local, a global,
an attribute or a key, whatever the layout makes of it) and «value». Marks at the end of a line (`#@blame`, `#@born`) never reach the program; they become the
line numbers of its truth."""
import builtins
import keyword
import re

NOUNS = """anchor apron arbor arch atlas badge bale banner barge basin basket beacon beam bell belt bench blade bolt border branch brick bridge brook brush bucket bundle cabin cable camp canal candle
canyon cape cargo castle cedar chain chalk channel chapel circle citrus clay cliff cloth clover coast cobalt comet compass copper coral cotton cove crane crate creek crown current dam dawn delta
desert dial dome drift drum dune echo ember engine estate fabric falcon farm feather fern ferry field finch flint flock flute foam fog folio forest forge fountain garden garnet gate gear glacier
glade glass glove gorge grain granite grove gulf gull hamlet hammer harbor harvest hazel hearth hedge heron hill hinge hollow horizon horn indigo inlet iris island ivory ivy jade jetty juniper
kayak kernel kettle kiln lagoon lamp lantern larch lattice laurel lava leaf ledge lever lichen lily linen lodge loom lumber lynx magnet mallet manor maple marble market marsh mast meadow mesa
mill mint mirror mist moor mosaic moss mound nectar needle nest nickel north oak oasis oat ocean olive onyx opal orbit orchard otter oxide paddle palm panel paper parcel park path pearl pebble
pepper pier pigment pillar pine pivot plain plank plateau plume pollen pond poplar port prairie prism quarry quartz quill raft rail rain raven reed reef ridge river road robin rope rudder rune
saddle saffron sage sail salmon sand sapling satin scarf season seed shade shale shell shore sierra silk silver slate sleet slope smoke snow solar south spark spice spire spoke spring spruce
spur steam steel stem stone storm straw stream summit sunset surf swan talon tarn thistle thorn thread tide tile timber tin torch tower trail trellis tulip tundra tunnel turret umber valley
vane vapor velvet vessel village vine violet vista walnut warp water wave weft well west wharf wheat wheel willow wind winter wolf wood wool yarn yew zephyr zinc""".split()
QUALITIES = """able amber ample basic blue brief bright broad calm clean clear close cold common cool crisp curved daily damp deep dense distant dry dull dusty early east eastern even faint fair fast
final fine firm flat fresh full gentle giant glad golden grand green grey hard heavy high hollow humble inner joint keen large late lean left level light linear little local long loose low lower main
major mellow mild minor mixed modern moist narrow near neat new noble odd open outer pale plain prime proper pure quick quiet rapid raw red right rough round rural second secret sharp short
silent simple single slim slow small smooth soft solid sparse stable steady steep still strong subtle sunny sweet swift tall tender thick thin third tidy tiny total trim upper urban vast vivid
warm white whole wide wild young""".split()
VERBS = """adjust advance align apply arrange assess attend balance bend bind blend bring build carry carve cast chart check clear climb combine compare compose consult convert count cover cross
derive draw drive enter estimate examine explore extend fetch fill filter find finish fold follow gather give glide guide handle inspect join launch lead lift link load look map mark match measure
meet merge mix mount move open pack paint pass pick plant play press probe process pull push raise reach read refine render rest review roll run sail scan score seek send serve set shape share
shift show sift sketch solve sort spin split spread start step stir study sum sweep swing take tend trace track trim tune turn update use view visit walk warm wash weave weigh work wrap""".split()
FORBIDDEN = {*keyword.kwlist, *dir(builtins), "np", "os", "time", "random", "math", "sys", "json", "queue", "functools", "collections", "threading", "torch", "keras", "tf", "jax", "jnp", "plt", "self",
             "loss", "match", "type", "string", "array", "heapq", "logging", "warnings", "mmap", "select", "signal", "socket", "resource", "copy", "io", "gc", "re", "bisect", "itertools", "operator", "main"}


class Names:
    """Identifiers drawn without regard to what they will stand for, each used once in a program."""

    def __init__(self, rng):
        self.rng, self.used = rng, set()

    def draw(self, like):
        """A name in the manner of `like`: a constant for UPPER, a class for Capital, a function for verbs (do_...), else a variable."""
        rng = self.rng
        while True:
            noun = rng.choice(NOUNS)
            if like.startswith("do_"):
                name = rng.choice([f"{rng.choice(VERBS)}_{noun}", f"{rng.choice(VERBS)}_{rng.choice(QUALITIES)}_{noun}", rng.choice(VERBS)])
            else:
                name = rng.choice([noun, noun + "s", f"{rng.choice(QUALITIES)}_{noun}", f"{noun}_{rng.choice(NOUNS)}", f"{rng.choice(QUALITIES)}_{noun}s"])
            if like.isupper():
                name = rng.choice(["", "_"]) + name.upper()
            elif like[0].isupper():
                name = "".join(word.capitalize() for word in name.split("_"))
            if name not in self.used and name not in FORBIDDEN:
                self.used.add(name)
                return name


class Scope:
    """The names of one part of a program: the same hole has the same name throughout it."""

    def __init__(self, names):
        self.names, self.given = names, {}

    def __getitem__(self, hole):
        if hole not in self.given:
            self.given[hole] = self.names.draw(hole)
        return self.given[hole]

    def fill(self, template, **values):
        """The template with its $names and those «values» that are given; §names stay, with the drawn name in them."""
        text = re.sub(r"«(\w+)»", lambda hole: str(values.get(hole[1], hole[0])), template)
        text = re.sub(r"§(\w+)", lambda hole: "§" + self[hole[1]], text)
        return re.sub(r"\$(\w+)", lambda hole: self[hole[1]], text)


def indent(text, depth=1):
    return "\n".join("    " * depth + line if line.strip() else "" for line in text.split("\n"))


def block(text):
    """A template as it stands in our source: without the blank lines around it and the indentation of all."""
    lines = text.strip("\n").rstrip().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines)


def guarded(condition, text):
    return f"if {condition}:\n{indent(text)}" if condition else text


MARK = re.compile(r"\s*#@(\w+):(\d+)")


def without_marks(text):
    """The program, and {(what, part): [line numbers]}."""
    lines, found = [], {}
    for number, line in enumerate(text.split("\n"), 1):
        for what, part in MARK.findall(line):
            found.setdefault((what, int(part)), []).append(number)
        lines.append(MARK.sub("", line))
    return "\n".join(lines), found
