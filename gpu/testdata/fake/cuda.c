// A fake libcuda.so.1 for tests: memory of the host stands in for a device's, a
// thread for each stream, and a function in C for each kernel.
//
// It is strict where the driver is, or more so. Addresses of device memory are none
// that the processor has, so that host code which follows one crashes. Every call
// needs a context that is current on its thread, handles that are alive and ranges
// within one allocation; an asynchronous copy needs memory that is pinned. It counts
// what is alive, and fails at the nth call of a function when it is told to.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PEERMESH_HOST
#include "../../kernels.cu"
#include "../../convnet/kernels.cu"

#define API __attribute__((visibility("default")))

enum {
	OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
	INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
	ILLEGAL_ADDRESS = 700,
};

#define DEVICES 4
#define CAPACITY (256ull << 20) // of a device's memory
#define DEVICE_BIT (1ull << 62)

typedef int Result;
typedef uint64 Address;

typedef struct Context { int device, references; atomic_int sticky; } Context;

typedef struct Task { struct Task *next; Result (*run)(void *); void *argument; } Task;

typedef struct Stream {
	struct Stream *next;
	Context *context;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more, idle;
	Task *head, **tail;
	int busy, quit;
	int waiting; // calls that wait for it, which it outlives
} Stream;

typedef struct Event {
	struct Event *next;
	int references; // its own, and those of tasks that have yet to happen
	uint64 recorded, happened;
	pthread_mutex_t lock;
	pthread_cond_t changed;
} Event;

typedef struct Block { struct Block *next; uint64 at, size; int device; } Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all below
static pthread_cond_t waited = PTHREAD_COND_INITIALIZER;
static int devices = -1;
static Context contexts[DEVICES];
static Block *memory, *pinned;
static Stream *streams;
static Event *events;
static uint64 used[DEVICES];
static atomic_int modules, context_delay, copy_delay, stalled;
static _Thread_local Context *current;

// ---- what tests tell it

#define FAILURES 16
static struct { char function[48]; int nth, code; } failures[FAILURES];

// The nth call of a function from now on fails with a code. "copy" and "kernel" are
// what streams do, so that the failure comes late, and for good; with "spoil" and "spoil
// kernel" they do it wrong. With "spoil count" there are no devices, and with "spoil event" an
// event has happened that has not.
API void fake_fail(const char *function, int nth, int code) {
	pthread_mutex_lock(&lock);
	for (int i = 0; i < FAILURES; i++)
		if (!failures[i].nth) {
			snprintf(failures[i].function, sizeof failures[i].function, "%s", function);
			failures[i].nth = nth, failures[i].code = code;
			break;
		}
	pthread_mutex_unlock(&lock);
}

API void fake_reset(void) {
	pthread_mutex_lock(&lock);
	memset(failures, 0, sizeof failures);
	context_delay = copy_delay = 0;
	for (int i = 0; i < DEVICES; i++) contexts[i].sticky = 0;
	pthread_mutex_unlock(&lock);
}

API void fake_context_delay(int us) { context_delay = us; }
API void fake_copy_delay(int us) { copy_delay = us; }
API void fake_stall(int yes) { stalled = yes; } // all copies, until it is told otherwise

// How many are alive: device memory, pinned memory, streams, events, modules, contexts.
API int fake_alive(int what) {
	int n = 0;
	pthread_mutex_lock(&lock);
	switch (what) {
	case 0: for (Block *b = memory; b; b = b->next) n++; break;
	case 1: for (Block *b = pinned; b; b = b->next) n++; break;
	case 2: for (Stream *s = streams; s; s = s->next) n++; break;
	case 3: for (Event *e = events; e; e = e->next) n++; break;
	case 4: n = modules; break;
	case 5: for (int i = 0; i < DEVICES; i++) n += contexts[i].references; break;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

// A process that no test can speak to is told by its environment: FAKE_FAIL is the
// function, which call of it, and the code, as in "cuMemAlloc_v2 3 2".
__attribute__((constructor)) static void born(void) {
	char function[48];
	int nth, code;
	const char *text = getenv("FAKE_FAIL");
	if (text && sscanf(text, "%47s %d %d", function, &nth, &code) == 3) fake_fail(function, nth, code);
}

static Result told(const char *function) {
	Result code = OK;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < FAILURES; i++)
		if (failures[i].nth > 0 && !strcmp(failures[i].function, function) && --failures[i].nth == 0)
			code = failures[i].code;
	pthread_mutex_unlock(&lock);
	return code;
}

// ---- what every call checks

#define TOLD do { Result code = told(__func__); if (code) return code; } while (0)
#define READY do { TOLD; if (devices < 0) return NOT_INITIALIZED; } while (0)
#define BOUND do { READY; if (!current) return INVALID_CONTEXT; if (current->sticky) return current->sticky; } while (0)

static char *host(Address p) { return (char *)(p & ~DEVICE_BIT); }

static int within(Block *list, uint64 p, uint64 n) {
	int found = 0;
	pthread_mutex_lock(&lock);
	for (Block *b = list; b; b = b->next)
		if (p >= b->at && p - b->at <= b->size && n <= b->size - (p - b->at)) found = 1;
	pthread_mutex_unlock(&lock);
	return found;
}
static int on_device(Address p, uint64 n) { return within(memory, p, n); }
static int is_pinned(const void *p, uint64 n) { return within(pinned, (uint64)p, n); }

#define ALIVE(type, list) \
	static int alive_##list(type *x) { \
		int found = 0; \
		pthread_mutex_lock(&lock); \
		for (type *y = list; y; y = y->next) found |= y == x; \
		pthread_mutex_unlock(&lock); \
		return found; \
	}
ALIVE(Stream, streams)
ALIVE(Event, events)
#define STREAM(s) do { if (!alive_streams(s) || s->context != current) return INVALID_HANDLE; } while (0)
#define EVENT(e) do { if (!alive_events(e)) return INVALID_HANDLE; } while (0)

// ---- the driver and its devices

API Result cuInit(unsigned flags) {
	TOLD;
	const char *n = getenv("FAKE_DEVICES");
	devices = n ? atoi(n) : DEVICES;
	if (devices <= 0) return NO_DEVICE;
	for (int i = 0; i < DEVICES; i++) contexts[i].device = i;
	return flags ? INVALID_VALUE : OK;
}
API Result cuDriverGetVersion(int *version) { TOLD; *version = 12040; return OK; }
API Result cuGetErrorName(Result code, const char **name) {
	static _Thread_local char buffer[32];
	snprintf(buffer, sizeof buffer, "FAKE_ERROR_%d", code);
	*name = code == 999 ? NULL : buffer;
	return OK;
}
API Result cuGetErrorString(Result code, const char **words) { *words = code == 999 ? NULL : "a fake's failure"; return OK; }
API Result cuDeviceGetCount(int *n) { READY; *n = told("spoil count") ? 0 : devices; return OK; }
API Result cuDeviceGet(int *device, int i) { READY; if (i < 0 || i >= devices) return INVALID_DEVICE; *device = i; return OK; }
API Result cuDeviceGetName(char *name, int n, int device) { READY; snprintf(name, n, "Fake %d", device); return OK; }
API Result cuDeviceGetUuid(unsigned char *uuid, int device) { READY; memset(uuid, 0xfa, 16); uuid[15] = device; return OK; }
API Result cuDeviceTotalMem_v2(size_t *n, int device) { READY; (void)device; *n = CAPACITY; return OK; }
API Result cuDeviceGetAttribute(int *value, int attribute, int device) {
	READY;
	(void)device;
	*value = attribute == 75 ? 8 : attribute == 76 ? 6 : 0;
	return OK;
}
API Result cuDeviceGetPCIBusId(char *id, int n, int device) { READY; snprintf(id, n, "0000:%02x:00.0", device + 1); return OK; }
API Result cuDevicePrimaryCtxRetain(Context **context, int device) {
	READY;
	if (device < 0 || device >= devices) return INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	contexts[device].references++;
	pthread_mutex_unlock(&lock);
	*context = &contexts[device];
	return OK;
}
API Result cuDevicePrimaryCtxRelease_v2(int device) {
	READY;
	pthread_mutex_lock(&lock);
	Result code = contexts[device].references > 0 ? OK : INVALID_CONTEXT;
	if (!code) contexts[device].references--;
	pthread_mutex_unlock(&lock);
	return code;
}
// A slow call has Go's scheduler give the processor to another goroutine, and a
// goroutine that is not locked to its thread comes back on another.
API Result cuCtxSetCurrent(Context *context) {
	READY;
	if (context && !context->references) return INVALID_CONTEXT;
	current = context;
	if (context_delay) usleep(context_delay);
	return OK;
}
API Result cuMemGetInfo_v2(size_t *left, size_t *total) { BOUND; *total = CAPACITY; *left = CAPACITY - used[current->device]; return OK; }

// ---- streams

static void *worker(void *argument) {
	Stream *s = argument;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->head && !s->quit) pthread_cond_wait(&s->more, &s->lock);
		if (!s->head) break;
		Task *t = s->head;
		if (!(s->head = t->next)) s->tail = &s->head;
		s->busy = 1;
		pthread_mutex_unlock(&s->lock);
		Result code = t->run(t->argument);
		if (code) s->context->sticky = code;
		free(t);
		pthread_mutex_lock(&s->lock);
		s->busy = 0;
		if (!s->head) pthread_cond_broadcast(&s->idle);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
static Result enqueue(Stream *s, Result (*run)(void *), const void *argument, size_t n) {
	Task *t = malloc(sizeof *t);
	*t = (Task){ .run = run, .argument = memcpy(malloc(n), argument, n) };
	pthread_mutex_lock(&s->lock);
	*s->tail = t;
	s->tail = &t->next;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	return OK;
}
static void drain(Stream *s) {
	pthread_mutex_lock(&s->lock);
	while (s->head || s->busy) pthread_cond_wait(&s->idle, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

API Result cuStreamCreate(Stream **out, unsigned flags) {
	BOUND;
	(void)flags;
	Stream *s = calloc(1, sizeof *s);
	s->context = current;
	s->tail = &s->head;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	pthread_cond_init(&s->idle, NULL);
	pthread_create(&s->thread, NULL, worker, s);
	pthread_mutex_lock(&lock);
	s->next = streams, streams = s;
	pthread_mutex_unlock(&lock);
	*out = s;
	return OK;
}
API Result cuStreamDestroy_v2(Stream *s) {
	READY;
	STREAM(s);
	pthread_mutex_lock(&lock);
	for (Stream **p = &streams; *p; p = &(*p)->next) if (*p == s) { *p = s->next; break; }
	while (s->waiting) pthread_cond_wait(&waited, &lock);
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&s->lock);
	s->quit = 1;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	free(s);
	return OK;
}
API Result cuStreamSynchronize(Stream *s) { BOUND; STREAM(s); drain(s); return current->sticky; }

// ---- events

typedef struct { Event *event; uint64 turn; } Turn;

static void release(Event *e) {
	pthread_mutex_lock(&e->lock);
	int last = --e->references == 0;
	pthread_mutex_unlock(&e->lock);
	if (last) free(e);
}
static Turn take(Event *e, int record) {
	pthread_mutex_lock(&e->lock);
	e->references++;
	e->recorded += record;
	Turn t = { e, e->recorded };
	pthread_mutex_unlock(&e->lock);
	return t;
}
static Result happen(void *argument) {
	Turn t = *(Turn *)argument;
	free(argument);
	pthread_mutex_lock(&t.event->lock);
	if (t.turn > t.event->happened) t.event->happened = t.turn;
	pthread_cond_broadcast(&t.event->changed);
	pthread_mutex_unlock(&t.event->lock);
	release(t.event);
	return OK;
}
static void await(Turn t) {
	pthread_mutex_lock(&t.event->lock);
	while (t.event->happened < t.turn) pthread_cond_wait(&t.event->changed, &t.event->lock);
	pthread_mutex_unlock(&t.event->lock);
	release(t.event);
}
static Result await_task(void *argument) {
	Turn t = *(Turn *)argument;
	free(argument);
	await(t);
	return OK;
}

API Result cuEventCreate(Event **out, unsigned flags) {
	BOUND;
	(void)flags;
	Event *e = calloc(1, sizeof *e);
	e->references = 1;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	pthread_mutex_lock(&lock);
	e->next = events, events = e;
	pthread_mutex_unlock(&lock);
	*out = e;
	return OK;
}
API Result cuEventDestroy_v2(Event *e) {
	READY;
	EVENT(e);
	pthread_mutex_lock(&lock);
	for (Event **p = &events; *p; p = &(*p)->next) if (*p == e) { *p = e->next; break; }
	pthread_mutex_unlock(&lock);
	release(e);
	return OK;
}
API Result cuEventRecord(Event *e, Stream *s) { BOUND; EVENT(e); STREAM(s); Turn t = take(e, 1); return enqueue(s, happen, &t, sizeof t); }
API Result cuStreamWaitEvent(Stream *s, Event *e, unsigned flags) { BOUND; EVENT(e); STREAM(s); Turn t = take(e, 0); return flags ? INVALID_VALUE : enqueue(s, await_task, &t, sizeof t); }
API Result cuEventSynchronize(Event *e) { BOUND; EVENT(e); await(take(e, 0)); return current->sticky; }
API Result cuEventQuery(Event *e) {
	BOUND;
	EVENT(e);
	int early = told("spoil event");
	pthread_mutex_lock(&e->lock);
	int done = early || e->happened >= e->recorded;
	pthread_mutex_unlock(&e->lock);
	return done ? current->sticky : NOT_READY;
}

typedef struct { void (*f)(void *); void *argument; } HostCall;
static Result host_call(void *argument) { HostCall c = *(HostCall *)argument; free(argument); c.f(c.argument); return OK; }
API Result cuLaunchHostFunc(Stream *s, void (*f)(void *), void *argument) {
	BOUND;
	STREAM(s);
	HostCall c = { f, argument };
	return enqueue(s, host_call, &c, sizeof c);
}

// ---- memory

// Memory begins at a multiple of 256, as the driver's does, and ends where none follows, so
// that a kernel which goes on crashes.
static size_t room(size_t n) { return (n + 255) & ~(size_t)255; }
static size_t whole(size_t n) { return (room(n) + 4095) & ~(size_t)4095; }
static void *pages(size_t n) {
	char *p = mmap(NULL, whole(n) + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || mprotect(p + whole(n), 4096, PROT_NONE)) return NULL;
	return memset(p + whole(n) - room(n), 0xa5, room(n)); // what nobody has written shows
}
static void unpages(char *p, size_t n) { munmap(p + room(n) - whole(n), whole(n) + 4096); }

static Result block(Block **list, uint64 at, uint64 n) {
	Block *b = malloc(sizeof *b);
	*b = (Block){ *list, at, n, current->device };
	*list = b;
	return OK;
}
static Result unblock(Block **list, uint64 at) {
	for (Block **p = list; *p; p = &(*p)->next)
		if ((*p)->at == at) {
			Block *b = *p;
			*p = b->next;
			if (list == &memory) used[b->device] -= b->size;
			unpages(host(at), b->size);
			free(b);
			return OK;
		}
	return INVALID_VALUE;
}
API Result cuMemAlloc_v2(Address *out, size_t n) {
	BOUND;
	if (!n) return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	void *p = n <= CAPACITY - used[current->device] ? pages(n) : NULL;
	if (p) {
		used[current->device] += n;
		block(&memory, *out = (uint64)p | DEVICE_BIT, n);
	}
	pthread_mutex_unlock(&lock);
	return p ? OK : OUT_OF_MEMORY;
}
// Freeing waits for the device, as the driver's does.
static void drain_all(void) {
	for (int i = 0;; i++) {
		pthread_mutex_lock(&lock);
		Stream *s = streams;
		for (int k = 0; s && k < i; k++) s = s->next;
		int mine = s && s->context == current;
		if (mine) s->waiting++;
		pthread_mutex_unlock(&lock);
		if (!s) break;
		if (!mine) continue;
		drain(s);
		pthread_mutex_lock(&lock);
		s->waiting--;
		pthread_cond_broadcast(&waited);
		pthread_mutex_unlock(&lock);
	}
}
API Result cuMemFree_v2(Address p) {
	READY;
	if (!current) return INVALID_CONTEXT;
	drain_all();
	pthread_mutex_lock(&lock);
	Result code = unblock(&memory, p);
	pthread_mutex_unlock(&lock);
	return code;
}
API Result cuMemHostAlloc(void **out, size_t n, unsigned flags) {
	BOUND;
	if (!n || flags != 1) return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if ((*out = pages(n))) block(&pinned, (uint64)*out, n);
	pthread_mutex_unlock(&lock);
	return *out ? OK : OUT_OF_MEMORY;
}
API Result cuMemFreeHost(void *p) {
	READY;
	if (current) drain_all();
	pthread_mutex_lock(&lock);
	Result code = unblock(&pinned, (uint64)p);
	pthread_mutex_unlock(&lock);
	return code;
}

// "spoil" is no failure: the bytes are others.
static void spoil(void *p, size_t n) { if (n && told("spoil")) ((char *)p)[n - 1] ^= 1; }

typedef struct { void *to; const void *from; size_t n; } Copy;
static Result copy(void *argument) {
	Copy c = *(Copy *)argument;
	free(argument);
	Result code = told("copy");
	if (code) return code;
	while (stalled) usleep(100);
	if (copy_delay) usleep(copy_delay);
	memmove(c.to, c.from, c.n);
	spoil(c.to, c.n);
	return OK;
}
static Result queue_copy(Stream *s, void *to, const void *from, size_t n) { Copy c = { to, from, n }; return enqueue(s, copy, &c, sizeof c); }
API Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t n, Stream *s) {
	BOUND;
	STREAM(s);
	return on_device(to, n) && is_pinned(from, n) ? queue_copy(s, host(to), from, n) : INVALID_VALUE;
}
API Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t n, Stream *s) {
	BOUND;
	STREAM(s);
	return on_device(from, n) && is_pinned(to, n) ? queue_copy(s, to, host(from), n) : INVALID_VALUE;
}
API Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, Stream *s) {
	BOUND;
	STREAM(s);
	return on_device(from, n) && on_device(to, n) ? queue_copy(s, host(to), host(from), n) : INVALID_VALUE;
}
// Those that return when they are done take any memory.
static Result copy_now(void *to, const void *from, size_t n) {
	Result code = told("copy");
	if (code) return current->sticky = code;
	if (copy_delay) usleep(copy_delay);
	memmove(to, from, n);
	spoil(to, n);
	return OK;
}
API Result cuMemcpyHtoD_v2(Address to, const void *from, size_t n) {
	BOUND;
	return on_device(to, n) ? copy_now(host(to), from, n) : INVALID_VALUE;
}
API Result cuMemcpyDtoH_v2(void *to, Address from, size_t n) {
	BOUND;
	return on_device(from, n) ? copy_now(to, host(from), n) : INVALID_VALUE;
}
typedef struct { void *to; int value; size_t n; } Set;
static Result set(void *argument) { Set c = *(Set *)argument; free(argument); memset(c.to, c.value, c.n); return OK; }
API Result cuMemsetD8Async(Address to, unsigned char value, size_t n, Stream *s) {
	BOUND;
	STREAM(s);
	Set c = { host(to), value, n };
	return on_device(to, n) ? enqueue(s, set, &c, sizeof c) : INVALID_VALUE;
}

// ---- kernels: the text has to name one, and C has to have it

#define PARAMETERS 12
typedef uint64 Parameters[PARAMETERS];
// A function has the sizes of its parameters, in bytes: those of 8 are addresses, but in
// kernels.cu, where all are of 8; there, size is that of the elements, and step says that
// the second is a number.
typedef struct { void (*f)(uint64, uint64, uint64, uint64, uint64, uint64, uint64, uint64, uint64, uint64, uint64, uint64); int n, sizes[PARAMETERS], size, step; } Function;
typedef struct { char *text; Function functions[128]; int n; } Module;

API Result cuModuleLoadData(Module **out, const char *text) {
	BOUND;
	if (strncmp(text, "//", 2) || !strstr(text, ".version")) return INVALID_IMAGE;
	*out = calloc(1, sizeof **out);
	(*out)->text = strdup(text);
	modules++;
	return OK;
}
API Result cuModuleUnload(Module *m) { READY; free(m->text); free(m); modules--; return OK; }
static int element(const char *type) {
	if (!strcmp(type, "bfloat16")) return 2;
	size_t n = strlen(type);
	return strstr(type, "64") ? 8 : strstr(type, "32") ? 4 : n > 2 && strstr(type, "16") ? 2 : 1;
}
static int parameters(const char *entry, int sizes[PARAMETERS]) {
	const char *end = strchr(entry, ')');
	int n = 0, same = 1;
	for (const char *p = entry; (p = strstr(p, ".param .u")) && p < end && n < PARAMETERS; p++) {
		sizes[n++] = p[9] == '6' ? 8 : 4;
		same &= p[9] == '6';
	}
	return same ? 0 : n;
}
API Result cuModuleGetFunction(Function **out, Module *m, const char *name) {
	BOUND;
	char entry[80];
	snprintf(entry, sizeof entry, ".visible .entry %s(", name);
	Dl_info self;
	void *library = dladdr(cuInit, &self) ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
	void *f = library ? dlsym(library, name) : NULL;
	const char *at = strstr(m->text, entry);
	if (library) dlclose(library);
	if (!f || !at || m->n == 128) return NOT_FOUND;
	Function *k = *out = &m->functions[m->n++];
	*(void **)&k->f = f;
	if ((k->n = parameters(at, k->sizes))) return OK;
	k->size = element(strchr(name, '_') + 1);
	k->step = !strncmp(name, "scale_", 6) || !strncmp(name, "divide_", 7);
	return OK;
}
typedef struct { Function *k; Parameters p; uint64 threads; } Launch;
static Result run_kernel(void *argument) {
	Launch l = *(Launch *)argument;
	uint64 *p = l.p;
	free(argument);
	Result code = told("kernel");
	if (code) return code;
	for (stride = l.threads, first = 0; first < stride; first++)
		l.k->f(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11]);
	if (told("spoil kernel")) *(char *)p[0] ^= 1;
	first = 0, stride = 1;
	return OK;
}
// Addresses as the host has them, if they are of memory.
static Result reach(Function *k, uint64 *p) {
	for (int i = 0; i < k->n; i++) {
		if (k->sizes[i] == 4) continue;
		if (!on_device(p[i], 1)) return ILLEGAL_ADDRESS;
		p[i] = (uint64)host(p[i]);
	}
	if (k->n) return OK;
	if (!on_device(p[0], p[2] * k->size) || p[0] % k->size) return ILLEGAL_ADDRESS;
	if (!k->step && (!on_device(p[1], p[2] * k->size) || p[1] % k->size)) return ILLEGAL_ADDRESS;
	p[0] = (uint64)host(p[0]);
	if (!k->step) p[1] = (uint64)host(p[1]);
	return OK;
}
API Result cuLaunchKernel(Function *k, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
		Stream *s, void **parameters, void **extra) {
	BOUND;
	STREAM(s);
	if (!k || !x || y != 1 || z != 1 || !bx || bx > 1024 || by != 1 || bz != 1 || shared || extra) return INVALID_VALUE;
	Launch l = { k, { 0 }, (uint64)x * bx };
	for (int i = 0; i < (k->n ? k->n : 3); i++)
		l.p[i] = k->n && k->sizes[i] == 4 ? *(uint32 *)parameters[i] : *(uint64 *)parameters[i];
	Result code = reach(k, l.p);
	return code ? code : enqueue(s, run_kernel, &l, sizeof l);
}

// ---- for the fake of NCCL

API int fake_device(void) { return current ? current->device : -1; }
API void *fake_host(Address p, uint64 n) { return on_device(p, n) ? host(p) : NULL; }
API Result fake_enqueue(Stream *s, Result (*run)(void *), const void *argument, size_t n) {
	STREAM(s);
	return enqueue(s, run, argument, n);
}
