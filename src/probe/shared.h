/* What the probe writes and the collector reads: one file of shared memory for each watched process. Plain C; needs
 * nothing.
 *
 *   MILLPOND_WATCH=/dev/shm/millpond-XXXXXX LD_PRELOAD=libmillpond_probe.so program
 *
 * Every process of the tree makes <folder>/<pid>.probe there, children by fork too (an empty one of their own). The
 * collector maps it. The memory belongs to the file, so it is whole after SIGKILL.
 *
 *   +----------+------------------+----------------+--------+-------+---------+-----------+
 *   | Shared   | live[kLiveSlots] | stacks[kStacks]| frames | codes | text    | ring      |
 *   +----------+------------------+----------------+--------+-------+---------+-----------+
 *
 * live     Every sampled block that is alive, close together and in no order. A free removes its entry in
 *          place. So no event can be lost between the processes, and what is alive can be read at any moment: nothing
 *          has to be replayed. (A stream of events would lose frees when its reader is late, and a lost free looks like
 * a leak.) stacks   Call stacks, each once; only added. An id is a place in the table and stays; ids are given one
 * after another. frames   Runs of frames, innermost first; a stack is a run. codes    Functions of Python, each once:
 * file, name, first line. text     Strings without end mark; others refer to them by place and length. ring     Rare
 * records, in order: marks with snapshots, notes of the agent, modules. One reader. When it is full the record is
 * dropped and counted.
 *
 * Weights: a block of `size` bytes was sampled with probability 1 - exp(-size / T); `bytes` and `blocks` are what the
 * sample stands for (size / p and 1 / p), so sums over samples are unbiased whatever T was. Large blocks have p = 1.
 *
 * Publishing: an entry is filled, then its key (address, hash, count) is stored with release; a reader loads the key
 * with acquire. A reader may meet an entry that is being replaced: it reads the address twice.
 * Memory: the file has kSharedBytes; only pages that were written take memory, and no more than Room allows. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  kProbeVersion = 1,
  kLiveSlots = 1 << 16,
  kStacks = 1 << 14,
  kFrames = 1 << 19,
  kCodes = 1 << 15,
  kTextBytes = 4 << 20,
  kRingBytes = 2 << 20,
  kMaxDepth = 96, /* frames of a stack; deeper ones lose their outermost */
  kAgeBins = 8,
  kSizeClasses = 32, /* of blocks: [0] below 32 bytes, [i] from 2^(i+4), twice as large each, [31] from 32 GiB */
  kSoonMs = 10,      /* a block that lived no longer was temporary */
  kUnits = 16
};

/* What is counted while a program trains; the agent counts, snapshots carry all of them. */
enum ProbeUnit {
  kUnitBatch,   /* optimiser steps, train_on_batch, batches of fit */
  kUnitEpoch,   /* of fit, of a DataLoader, or as the program's own lines say */
  kUnitModel,   /* models built */
  kUnitCall,    /* predict, evaluate, jitted and traced functions called by the user */
  kUnitTrace,   /* tf.function traces, JAX compilations: new shapes */
  kUnitCompile, /* model.compile */
  kUnitLine,    /* lines of output that recur ("epoch 7: loss 0.12") */
  kUnitFit,     /* calls of fit */
  kUnitsUsed
};

enum LiveKind { kLiveMalloc = 1, kLiveMmap = 2, kLivePython = 3 };

struct Live {       /* 48 bytes */
  uint64_t address; /* 0: free place, 1: was used */
  uint64_t size;
  uint64_t bytes; /* what it stands for */
  float blocks;
  uint32_t stack;
  uint32_t born_ms; /* since Shared.start_ns */
  uint32_t kind;    /* LiveKind */
  uint64_t unused;
};

struct Stack {    /* 48 bytes */
  uint64_t hash;  /* 0: free place */
  uint32_t first; /* of its frames */
  uint16_t frames;
  uint16_t flags;                     /* 1: cut, deeper than kMaxDepth; 2: no Python frame; kStackShared */
  uint64_t total_bytes, total_blocks; /* weights of all samples so far: what was ever allocated here */
  uint64_t freed_bytes;               /* of that, given back */
  uint32_t thread;                    /* that was seen here first */
  uint32_t soon_kib; /* of freed_bytes, what lived at most kSoonMs; a block that realloc moved is not among it */
};
enum { kStackShared = 4 }; /* more than one thread was seen here */

/* All blocks of one size class so far, weighted as samples are. */
struct SizeTotals {
  uint64_t blocks, bytes, freed_bytes, soon_bytes;
};

/* Python: kFramePython | code << 32 | line. Native: the return address, as it lies in the process. */
typedef uint64_t Frame;
#define kFramePython (1ull << 63)

struct Text {
  uint32_t at, size;
};

struct Code {      /* 48 bytes */
  uint64_t object; /* address of the code object; with the next three what tells it from a later one at its place */
  uint64_t file_object, name_object;
  uint32_t first_line;
  struct Text file, name; /* name: qualified where Python has it (3.11), otherwise plain */
  uint32_t unused;
};

enum RecordKind {
  kRecordMark = 1,   /* MarkRecord, then `sites` SiteBytes, then name */
  kRecordNote = 2,   /* NoteRecord, then JSON text of the agent */
  kRecordModule = 3, /* ModuleRecord, then path: loaded code, so that native frames can be named after the run */
  kRecordScan = 4    /* ScanRecord, then `groups` ScanGroup */
};

struct RecordHeader { /* every record begins with it; size is a multiple of 8, and a record does not wrap:
                         kind 0 fills the rest of the ring */
  uint32_t size, kind;
  uint64_t t_ns; /* CLOCK_MONOTONIC */
};

enum MarkFlags {
  kMarkBegin = 1,   /* a phase begins */
  kMarkEnd = 2,     /* a phase ends */
  kMarkPeriod = 4,  /* the same moment of a loop: what is alive here is compared from one to the next */
  kMarkSnapshot = 8 /* sites follow */
};

struct SiteBytes { /* 56 bytes: what is alive of one stack */
  uint32_t stack;
  float blocks;
  uint64_t bytes;
  uint32_t age_kib[kAgeBins]; /* the same by birth: equal parts of the time from the first period mark until now; [0]
                                 holds all before too */
  uint64_t oldest_ms;
};

struct MarkRecord {
  struct RecordHeader header;
  char kind[16]; /* run, build, compile, fit, epoch, step, validation, evaluate, predict, trace, line, timer, end */
  int64_t index;
  uint32_t flags, sites, name_size, unused;
  uint64_t rss; /* statm */
  uint64_t heap_in_use, heap_free,
      heap_mapped;        /* mallinfo2: uordblks, fordblks, hblkhd and mapped_now; ~0: not known */
  uint64_t python_arenas; /* bytes pymalloc took from the system; ~0: not known */
  uint64_t units[kUnits];
};

struct NoteRecord {
  struct RecordHeader header;
  uint32_t text_size, unused;
};

struct ModuleRecord {
  struct RecordHeader header;
  uint64_t begin, end, offset; /* of its code: addresses in the process; file offset = address - begin + offset */
  uint8_t build_id[20];
  uint32_t path_size;
};

/* Who points to the native blocks that are alive and were born since the rounds began (scan.h). */
enum { kScanGroups = 24, kScanStatics = 6, kScanBlocks = 3 };
struct ScanGroup { /* those that were born at one stack */
  uint32_t stack, samples;
  uint64_t bytes;
  uint64_t lost;                /* of these: no pointer to them was found anywhere */
  uint64_t by_static, by_stack; /* a variable of static storage, a stack leads to them, through other blocks or not */
  uint64_t by_block;            /* a sampled block has a pointer to them, and what leads to that was not found */
  uint64_t by_other;            /* other memory has: of the heap and not sampled, or mapped by hand */
  uint64_t statics[kScanStatics], static_bytes[kScanStatics]; /* addresses of such variables; 0: none */
  uint32_t blocks[kScanBlocks]; /* births (stacks) of the sampled blocks on the way, nearest to them; ~0: none */
  uint32_t thread;              /* whose stack; 0: none */
  uint64_t block_bytes[kScanBlocks];
};
struct ScanRecord {
  struct RecordHeader header;
  uint64_t ns, scanned; /* of the processor; bytes of memory that were looked at */
  uint64_t alive;       /* bytes of the blocks asked for, all groups */
  uint32_t groups, unused;
};
struct Scan {    /* shared with the child that makes it */
  uint64_t done; /* 1: filled; 2: written to the ring, or nothing was asked for */
  struct ScanRecord record;
  struct ScanGroup group[kScanGroups];
};

struct Shared {
  uint64_t version; /* kProbeVersion; 0 until all is ready */
  uint64_t bytes;   /* of the file */
  int32_t pid, parent;
  uint64_t start_ns;                                         /* CLOCK_MONOTONIC when this process came under watch */
  uint64_t ended_ns;                                         /* set by exit; 0 after a kill */
  int32_t python;                                            /* 0: no interpreter seen; 311: 3.11 */
  int32_t agent;                                             /* 1: the agent runs */
  uint64_t interval;                                         /* T now */
  uint64_t exact_from;                                       /* blocks of this size and more are all recorded */
  uint64_t samples, frees;                                   /* taken so far */
  uint64_t lost_live, lost_stacks, lost_codes, lost_records; /* tables and ring that were full */
  uint64_t probe_ns;                                         /* time spent in sampling and marks, all threads */
  uint64_t probe_bytes;                                      /* memory of the probe besides this file */
  uint64_t mapped_now; /* bytes of mappings made by the program itself (not by an allocator) and still there */
  uint64_t units[kUnits];
  uint32_t stacks, frames, codes, text; /* used so far */
  uint64_t first_period_ms;             /* time of the first period mark; 0: none yet */
  uint64_t write, read;                 /* of the ring, counted without end: place = value % kRingBytes */
  uint64_t pool_bytes;                  /* of Room.pool_taken, this process's */
  uint64_t refused;                     /* parts of this file that found no room */
  uint64_t allocator;                   /* AllocatorFlags */
  uint64_t pid_space;                   /* in which pid counts (inode of its namespace); 0: not known */
  uint64_t python_frames;               /* PythonFrames; 0: no interpreter seen */
  uint64_t forked;                      /* 1: this process is a copy of its parent, made by fork */
  uint64_t inherited;                   /* bytes without a file behind them that it had of its parent then */
  uint64_t no_scan;                     /* NoScan: why nobody looked for pointers to native blocks */
  uint64_t unused[8];
  struct SizeTotals sizes[kSizeClasses];
};

enum NoScan {
  kNoScanAsked,
  kNoScanTables /* the page tables of a child would take over 1 % of free memory */,
  kNoScanTime /* it would take over 1 % of the time */,
  kNoScanDied
};

enum PythonFrames {
  kFramesSeen = 1,
  kFramesNotKnown =
      2, /* the interpreter is of a version, or built in a way, whose frames cannot be read: no lines of Python */
  kFreeThreaded = 4, /* it is built without the GIL */
  kPyPy = 8          /* another interpreter: neither lines nor the agent */
};

enum AllocatorFlags {
  kAllocatorOther = 1, /* malloc is not the C library's */
  kAllocatorHidden = 2 /* operator new is that allocator's own and does not come by malloc: C++ is not seen by line */
};

/* How much shared memory all processes together may take: <folder>/room, made by the collector. Without it there is no
 * limit. Each process is promised kPromised bytes; what it needs beyond comes from a pool for all. Only probes write
 * `taken`, only the collector writes limits: it raises them by what an ended process gave back, so nothing is lost
 * between them. */
enum {
  kPromised = 512 << 10,
  kPool = (4 << 20) - (16 << 10)
}; /* with the page of the room itself 8 MiB for eight processes */
struct Room {
  uint64_t limit, taken; /* of what is promised */
  uint64_t pool_limit, pool_taken;
  /* Processes that are seen from outside, and why. */
  uint64_t refused;            /* no room */
  uint64_t without_descriptor; /* none was left to open a file with */
  uint64_t unopened;           /* the file could not be made for another reason: */
  uint64_t unopened_error;     /* that of the last one, as errno has it */
  uint64_t sanitized;          /* started without us, as a sanitizer's run time must come first */
};

/* Where the parts lie. */
#define kLiveAt 4096
#define kStacksAt (kLiveAt + sizeof(struct Live) * kLiveSlots)
#define kFramesAt (kStacksAt + sizeof(struct Stack) * kStacks)
#define kCodesAt (kFramesAt + sizeof(Frame) * kFrames)
#define kTextAt (kCodesAt + sizeof(struct Code) * kCodes)
#define kRingAt (kTextAt + kTextBytes)
#define kSharedBytes (kRingAt + kRingBytes)

/* What the agent calls (ctypes), exported by libmillpond_probe.so. All are safe from any thread. */
int millpond_probe_version(void);
/* Wraps Python's allocators of small objects. Called once with the GIL held, after the interpreter is up. 0: done. */
int millpond_probe_python(void);
/* A new tuple of the `count` variables of a Python frame, the frame itself in place of one that is not set. They lie
   `offset` bytes from the frame, or, with a `hop`, from where the pointer there leads (millpond_agent/variables.py).
   With the GIL held. */
void* millpond_probe_locals(void* frame, size_t hop, size_t offset, int count);
/* A new tuple of what atexit has registered, three for each of `count` functions: it, its arguments, its keywords, None
   for what is not there. `table` is the interpreter's (millpond_agent/unsaid.py); nothing but None if it has another
   length now. With the GIL held. */
void* millpond_probe_registered(const void* table, int count);
/* A place in the source that prints. The agent is asked again after `skip` more lines, or with the first one after
   due_ns (CLOCK_MONOTONIC); it sets both. */
enum { kPrintSites = 1 << 11 };
struct PrintSite {
  uint64_t code, instruction; /* 0: not used */
  uint64_t hits;              /* lines so far */
  uint64_t skip, due_ns;
};
/* Has `callable(site, values, names of keywords, None, or the stream for write)` asked about what is printed:
   print_object is builtins.print, write_object the descriptor TextIOWrapper.write, stdout_object the stream whose lines
   count. Null: no more. The table of sites, or null where this interpreter cannot be looked into. With the GIL held;
   the objects must live. */
struct PrintSite* millpond_probe_prints(void* callable, void* print_object, void* write_object, void* stdout_object);
/* Has `callable(kind, value, traceback)` called before sys.excepthook, its object, prints an exception; what it returns
   is the traceback that is printed. 0: done. Null: no more. With the GIL held. */
int millpond_probe_exceptions(void* callable, void* hook_object);
/* A new function that calls `callable` unseen by the program's trace and profile functions. With the GIL held. */
void* millpond_probe_untraced(void* callable);
/* A new function that calls `original` and, unseen, `then` with the same arguments; as a method it can be an attribute
 * of a class. */
void* millpond_probe_after(void* original, void* then, int method);
/* The counters of units: the agent adds to them in place. */
uint64_t* millpond_probe_units(void);
/* A mark; with kMarkSnapshot what is alive is written with it. */
void millpond_probe_mark(const char* kind, const char* name, int64_t index, uint32_t flags);
/* JSON for the collector: python/millpond/inject/NOTES.md lists what there is. 0: written, 1: the ring is full. */
int millpond_probe_note(const char* json, size_t size);
/* While on, what this thread allocates is not sampled: the agent's own work. kPauseApart: nor does it come from the
   program's heap (agent_heap.h). Nests; the outermost decides. */
enum { kPauseOff, kPauseOn, kPauseApart };
void millpond_probe_pause(int on);
/* malloc_trim(0) of the allocator in use, where it has one; -1: none. */
int millpond_probe_trim(void);
/* Bytes that the allocator in use holds free; ~0: it does not tell. */
uint64_t millpond_probe_free_bytes(void);
/* Has `callable`, a Python object, called without arguments in the main thread about every so many nanoseconds while
 * the program allocates; null: no more. With the GIL. */
void millpond_probe_tick(void* callable, uint64_t every_ns);

/* Who holds what is alive (walk.h). A step is an object of a chain, which begins with the holder and ends with a root.
 */
enum { kWalkHolders = 48, kWalkDepth = 20, kWalkStacks = 6, kWalkBirths = 16, kWalkType = 56 };
#define kWalkProcess "millpond-walk" /* the name of the child, whose memory is the program's */
enum WalkHow {
  kWalkReached,
  kWalkNative /* no root leads to it, and something that is not Python's does */,
  kWalkGarbage /* nothing does: it goes with the next collection */
};
struct WalkStep {
  uint64_t object;
  char type[kWalkType]; /* tp_name; a root has none before it */
};
struct WalkHolder {
  uint64_t bytes; /* of survivors right below it; samples stand for what they stand for */
  float blocks;
  uint32_t samples, items; /* items: things right below it that hold some */
  uint32_t how;            /* WalkHow */
  uint32_t repeats; /* it is the first of so many objects of its type, each of which holds the next; 0: no such chain */
  uint32_t depth;   /* steps */
  uint32_t alike;   /* so many containers of one type right below it are filled from the same place, and are told as it;
                       0: none */
  uint32_t whole;   /* 1: a single block, which may grow itself; what holds it counts its bytes too */
  uint64_t births[kWalkBirths]; /* bytes by birth: equal parts of the time from the first period mark until now */
  uint32_t stacks[kWalkStacks]; /* where they were born, most bytes first; ~0: none */
  uint64_t stack_bytes[kWalkStacks];
  struct WalkStep steps[kWalkDepth];
};
struct Walk {
  uint64_t done;                     /* 1 when all below is filled; 2: there was no memory for it */
  uint64_t now_ms, first_ms;         /* the births are between them */
  uint64_t objects, ns;              /* ns: of the processor */
  uint64_t alive;                    /* bytes of all survivors that were born since first_ms */
  uint64_t reached, native, garbage; /* of these, by WalkHow; the rest belongs to no object of Python */
  uint64_t unclaimed;                /* bytes that nothing owns which was reached without `later` */
  uint64_t lately;        /* of what belongs to no object, the bytes that were born in the later half of the time */
  uint32_t holders, full; /* full: there was no room for all objects */
  struct WalkHolder holder[kWalkHolders];
};
/* One walk from the objects of the list `roots`; lists of objects: `all` (gc.get_objects()), `hidden` and `later`
   (walk.h), or null; `owned`: pairs of an object's address and that of its data; `links`: pairs of an object and one
   that it holds without saying so; `given`: blocks of another memory, four numbers each (walk.h: Given), which the
   second of the two results is of; `room`: no more objects than these. kWalkApart: in a child, of which the program
   sees nothing; what is returned is filled later, and millpond_probe_walked tells when. It stays until the next call;
   null: not possible, or one is under way. kWalkShallow: without what is in `later`. With the GIL held. */
enum { kWalkApart = 1, kWalkShallow = 2 };
struct Walk* millpond_probe_walk(void* roots, void* all, void* hidden, void* later, const uint64_t* owned,
                                 size_t owned_count, const uint64_t* links, size_t link_count, const uint64_t* given,
                                 size_t given_count, size_t room, int flags);
/* 0: the child is at work; 1: it is done, or there is none; -1: it died. */
int millpond_probe_walked(void);

/* Python's frames of a stack, innermost first, a line each: file, line, function, with tabs between. How many bytes of
 * `out` were written. */
size_t millpond_probe_stack(uint32_t stack, char* out, size_t room);

/* The other way in (enter.h): for a library that was loaded while the program ran. `folder` is the collector's, which
 * is ready. */
enum {
  kEnterNative = 1 /* native frames below Python's too */,
  kEnterFollow = 2 /* forked children */,
  kEnterPython = 4 /* the GIL is held: Python's allocators too */
};
enum {
  kEntered,
  kEnterWatched,   /* it is inside already, or was preloaded and watches */
  kEnterPreloaded, /* it was preloaded and does not watch: it cannot come in a second way */
  kEnterNoFile,    /* no file could be made in the folder */
  kEnterNoMalloc   /* no malloc was found in any module */
};
int millpond_probe_enter(const char* folder, uint32_t flags);
/* Undoes all of it; with the GIL held if kEnterPython was given. -1: it is not inside; 0: all is as before; otherwise
 * LeftFlags. */
enum LeftFlags {
  kLeftTables = 1 /* another tool has changed tables over ours: those words stay */,
  kLeftAllocators = 2 /* likewise Python's allocators */,
  kLeftMemory = 4 /* a thread is stopped in the middle of our work: the shared memory stays mapped */
};
int millpond_probe_leave(void);
/* 0: does not watch; 1: watches, preloaded; 2: watches, entered at run time. */
int millpond_probe_watching(void);
/* Starts a collector with `socket` as its standard input, as no child of this process. Its process id, or what was
 * wrong, negative. */
int millpond_probe_spawn(const char* program, char* const* arguments, char* const* environment, int socket);

#ifdef __cplusplus
}
static_assert(sizeof(Live) == 48 && sizeof(Stack) == 48 && sizeof(Code) == 48 && sizeof(SiteBytes) == 56);
static_assert(sizeof(Shared) <= kLiveAt);
#endif
