// A fake libnccl.so.2 for tests: the members of a communicator are threads of one
// process, which meet on the streams of the fake libcuda and read each other's memory.
//
// Calls go on after they return, as those of a communicator that need not block may.
// A member that does not come is waited for until the communicator is aborted. Two
// members on one device are refused.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

typedef int Result;
enum { OK, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS };
enum { ALL_REDUCE, REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, EXCHANGE };

#define MEMBERS 8
#define OPS 8
#define MOVES 32
#define POLLS 2 // for so long a call is in progress

typedef struct { char text[128]; } Id;
typedef struct { size_t size; unsigned magic, version; int blocking; } Config;

typedef struct Move { int send, peer; char *at; size_t n; } Move;
typedef struct Task {
	struct Comm *comm;
	int kind, dtype, op, root, moves;
	char *from, *to;
	size_t n; // elements of the result that is reduced, or of what is given
	Move move[MOVES];
	double factor;
} Task;

// A room is where the members of an id meet.
typedef struct Room {
	struct Room *next;
	Id id;
	int size, joined, references, arrived, turn;
	int device[MEMBERS];
	Task *task[MEMBERS];
	const Move *mail[MEMBERS][MEMBERS]; // from, to: what is being sent
} Room;

typedef struct Comm {
	struct Comm *next;
	Room *room;
	int rank, device, finalized, tasks, ops;
	atomic_int state, aborted, polls;
	double factor[OPS];
	pthread_t thread;
} Comm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all below
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Room *rooms;
static Comm *comms;
static _Thread_local int depth;
static _Thread_local Task *group;
static _Thread_local void *group_stream;
static _Thread_local char last[160];

static struct {
	int (*device)(void);
	void *(*host)(uint64_t, uint64_t);
	int (*enqueue)(void *, Result (*)(void *), const void *, size_t);
	void *handle;
} cuda;

// ---- what tests tell it

#define FAILURES 16
static struct { char function[48]; int nth, code; } failures[FAILURES];
// The nth call of a function from now on fails with a code. With "spoil nccl" a result is
// another, and with "spoil join" a communicator is whole with the members that it has.
API void fake_fail(const char *function, int nth, int code) {
	pthread_mutex_lock(&lock);
	for (int i = 0; i < FAILURES; i++)
		if (failures[i].nth <= 0) {
			snprintf(failures[i].function, sizeof failures[i].function, "%s", function);
			failures[i].nth = nth, failures[i].code = code;
			break;
		}
	pthread_mutex_unlock(&lock);
}
// All communicators fail from now on, as when a member's process has died.
API void fake_break(int code) {
	pthread_mutex_lock(&lock);
	for (Comm *c = comms; c; c = c->next) c->state = code;
	pthread_mutex_unlock(&lock);
}
API int fake_alive(void) {
	int n = 0;
	pthread_mutex_lock(&lock);
	for (Comm *c = comms; c; c = c->next) n++;
	pthread_mutex_unlock(&lock);
	return n;
}
// By the environment, as the fake driver is.
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
		if (failures[i].nth > 0 && !strcmp(failures[i].function, function) && --failures[i].nth == 0) code = failures[i].code;
	pthread_mutex_unlock(&lock);
	return code;
}
#define TOLD do { Result code = told(__func__); if (code) return code; } while (0)
#define MEMBER(c) do { TOLD; if (!c || cuda.device() != (c)->device) return INVALID_ARGUMENT; if ((c)->state && (c)->state != IN_PROGRESS) return (c)->state; } while (0)

static int bind_cuda(void) {
	pthread_mutex_lock(&lock);
	const char *path = getenv("PEERMESH_CUDA");
	if (!cuda.handle && path && (cuda.handle = dlopen(path, RTLD_NOW))) {
		*(void **)&cuda.device = dlsym(cuda.handle, "fake_device");
		*(void **)&cuda.host = dlsym(cuda.handle, "fake_host");
		*(void **)&cuda.enqueue = dlsym(cuda.handle, "fake_enqueue");
	}
	pthread_mutex_unlock(&lock);
	return cuda.handle != NULL;
}

// ---- communicators

API Result ncclGetVersion(int *version) { TOLD; const char *v = getenv("FAKE_NCCL_VERSION"); *version = v ? atoi(v) : 22809; return OK; }
API const char *ncclGetErrorString(Result code) { return code == INVALID_USAGE ? "invalid usage" : code == IN_PROGRESS ? "in progress" : "a fake's failure"; }
API const char *ncclGetLastError(Comm *c) { (void)c; return last; }
API Result ncclGetUniqueId(Id *id) {
	TOLD;
	static atomic_int count;
	memset(id, 0x5a, sizeof *id);
	snprintf(id->text, sizeof id->text, "fake %d", ++count);
	id->text[127] = 0x77; // the last byte arrives as well
	return OK;
}

static void leave(Room *r) { // with the lock
	if (--r->references) return;
	for (Room **p = &rooms; *p; p = &(*p)->next) if (*p == r) { *p = r->next; break; }
	free(r);
}
static void *join(void *argument) {
	Comm *c = argument;
	Room *r = c->room;
	Result code = OK;
	pthread_mutex_lock(&lock);
	while (r->joined < r->size && !c->aborted) pthread_cond_wait(&changed, &lock);
	for (int i = 0; i < r->size; i++)
		if (i != c->rank && r->device[i] == c->device) code = INVALID_USAGE;
	c->state = c->aborted ? INTERNAL_ERROR : code;
	pthread_mutex_unlock(&lock);
	return NULL;
}
static Result init(Comm **out, int size, int rank, const Id *id, const Config *config) {
	if (!bind_cuda() || cuda.device() < 0) return CUDA_ERROR;
	if (size < 1 || size > MEMBERS || rank < 0 || rank >= size || id->text[127] != 0x77) return INVALID_ARGUMENT;
	if (config->magic != 0xcafebeef || config->blocking) return INVALID_ARGUMENT;
	Comm *c = calloc(1, sizeof *c);
	int whole = told("spoil join");
	pthread_mutex_lock(&lock);
	Room *r = rooms;
	while (r && memcmp(&r->id, id, sizeof *id)) r = r->next;
	if (!r) {
		r = calloc(1, sizeof *r);
		r->id = *id, r->size = size, r->next = rooms, rooms = r;
	}
	r->references++, r->joined++;
	if (whole) r->size = r->joined;
	r->device[rank] = cuda.device();
	c->room = r, c->rank = rank, c->device = cuda.device(), c->state = IN_PROGRESS;
	c->next = comms, comms = c;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_create(&c->thread, NULL, join, c);
	*out = c;
	return IN_PROGRESS;
}
API Result ncclCommInitRankScalable(Comm **out, int size, int rank, int ids, Id *id, Config *config) { TOLD; return ids == 1 ? init(out, size, rank, id, config) : INVALID_ARGUMENT; }
API Result ncclCommInitRankConfig(Comm **out, int size, Id id, int rank, Config *config) { TOLD; return init(out, size, rank, &id, config); }
API Result ncclCommGetAsyncError(Comm *c, Result *code) {
	TOLD;
	*code = c->state;
	if (!*code && c->polls > 0) { c->polls--; *code = IN_PROGRESS; }
	if (*code == INVALID_USAGE) snprintf(last, sizeof last, "Duplicate GPU detected");
	return OK;
}
API Result ncclCommFinalize(Comm *c) { MEMBER(c); c->finalized = 1; c->polls = POLLS; return IN_PROGRESS; }
static Result end(Comm *c) {
	pthread_join(c->thread, NULL);
	pthread_mutex_lock(&lock);
	while (c->tasks) pthread_cond_wait(&changed, &lock);
	for (Comm **p = &comms; *p; p = &(*p)->next) if (*p == c) { *p = c->next; break; }
	leave(c->room);
	pthread_mutex_unlock(&lock);
	free(c);
	return OK;
}
API Result ncclCommDestroy(Comm *c) { TOLD; return c->finalized ? end(c) : INVALID_USAGE; }
API Result ncclCommAbort(Comm *c) {
	TOLD;
	pthread_mutex_lock(&lock);
	c->aborted = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return end(c);
}

// ---- operations, on a stream's thread

static const int sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
static const char *types[] = { "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16" };

static int meet(Comm *c) { // with the lock; 0 if aborted
	Room *r = c->room;
	int turn = r->turn;
	if (++r->arrived == r->size) {
		r->arrived = 0, r->turn++;
		pthread_cond_broadcast(&changed);
	}
	while (r->turn == turn && !c->aborted) pthread_cond_wait(&changed, &lock);
	return r->turn != turn;
}
typedef void (*Kernel)(uint64_t, uint64_t, uint64_t);
static Kernel kernel(const char *op, int dtype) { // sums know no sign, and have no kernel with one
	char name[40];
	const char *type = types[dtype];
	if (strncmp(type, "int", 3) == 0 && strcmp(op, "min") && strcmp(op, "max") && strcmp(op, "divide")) type = types[dtype + 1];
	snprintf(name, sizeof name, "%s_%s", op, type);
	Kernel k;
	*(void **)&k = dlsym(cuda.handle, name);
	return k;
}
static uint64_t number(double f, int dtype) {
	union { float f; uint32_t u; } low = { .f = f };
	union { double f; uint64_t u; } high = { .f = f };
	return dtype == 8 ? high.u : dtype >= 6 ? low.u : (uint64_t)(int64_t)f;
}
static char *fold(Task *t, size_t first, size_t n) { // of all members' elements [first, first+n)
	static const char *ops[] = { "sum", "product", "max", "min", "sum" };
	Room *r = t->comm->room;
	size_t size = sizes[t->dtype];
	char *total = malloc(n * size + 1), *part = malloc(n * size + 1);
	for (int i = 0; i < r->size; i++) {
		Task *u = r->task[i];
		char *p = i ? part : total;
		memcpy(p, u->from + first * size, n * size);
		if (u->op >= 5) kernel("scale", t->dtype)((uint64_t)p, number(u->factor, t->dtype), n);
		if (i) kernel(ops[t->op > 4 ? 0 : t->op], t->dtype)((uint64_t)total, (uint64_t)part, n);
	}
	if (t->op == 4) kernel("divide", t->dtype)((uint64_t)total, number(r->size, t->dtype), n);
	free(part);
	return total;
}
static void exchange(Task *t) { // with the lock
	Comm *c = t->comm;
	Room *r = c->room;
	char left[MOVES] = { 0 };
	for (int open = t->moves; open && !c->aborted;) {
		int before = open;
		for (int i = 0; i < t->moves; i++) {
			Move *m = &t->move[i];
			const Move **out = &r->mail[c->rank][m->peer], **in = &r->mail[m->peer][c->rank];
			if (left[i] == 2) continue;
			if (m->send && left[i] == 1 && *out != m) left[i] = 2, open--;
			else if (m->send && !left[i] && !*out) *out = m, left[i] = 1, pthread_cond_broadcast(&changed);
			else if (!m->send && *in) {
				if ((*in)->n != m->n) c->state = INVALID_USAGE;
				memcpy(m->at, (*in)->at, (*in)->n < m->n ? (*in)->n : m->n);
				*in = NULL, left[i] = 2, open--;
				pthread_cond_broadcast(&changed);
			}
		}
		if (open && open == before) pthread_cond_wait(&changed, &lock);
	}
}
static void together(Task *t) { // with the lock: all members read, then all write
	Comm *c = t->comm;
	Room *r = c->room;
	size_t size = sizes[t->dtype], bytes = t->n * size;
	char *result = NULL;
	r->task[c->rank] = t;
	if (!meet(c)) return;
	for (int i = 0; i < r->size; i++)
		if (r->task[i]->kind != t->kind || r->task[i]->n != t->n || r->task[i]->dtype != t->dtype) c->state = INVALID_USAGE;
	switch (t->kind) {
	case REDUCE_SCATTER: result = fold(t, c->rank * t->n, t->n); break;
	case ALL_REDUCE: result = fold(t, 0, t->n); break;
	case REDUCE: if (c->rank == t->root) result = fold(t, 0, t->n); break;
	case BROADCAST: result = memcpy(malloc(bytes + 1), r->task[t->root]->from, bytes); break;
	case ALL_GATHER:
		result = malloc(r->size * bytes + 1);
		for (int i = 0; i < r->size; i++) memcpy(result + i * bytes, r->task[i]->from, bytes);
		bytes *= r->size;
	}
	if (meet(c) && result) memcpy(t->to, result, bytes);
	pthread_mutex_unlock(&lock);
	if (told("spoil nccl") && bytes) *t->to ^= 1;
	pthread_mutex_lock(&lock);
	free(result);
}
static Result run(void *argument) {
	Task *t = *(Task **)argument;
	Comm *c = t->comm;
	free(argument);
	pthread_mutex_lock(&lock);
	if (c->aborted) ;
	else if (t->kind == EXCHANGE) exchange(t);
	else together(t);
	c->tasks--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	free(t);
	return OK;
}
static Result queue(Comm *c, Task t, void *stream) {
	Task *p = malloc(sizeof *p);
	*p = t;
	pthread_mutex_lock(&lock);
	c->tasks++;
	pthread_mutex_unlock(&lock);
	if (cuda.enqueue(stream, run, &p, sizeof p)) {
		pthread_mutex_lock(&lock);
		c->tasks--;
		pthread_mutex_unlock(&lock);
		free(p);
		return INVALID_ARGUMENT;
	}
	c->polls = POLLS;
	return IN_PROGRESS;
}
// from has times elements for each that the call counts, and to has others.
static Result submit(Comm *c, Task t, uint64_t from, int times, uint64_t to, int others, void *stream) {
	if (t.dtype < 0 || t.dtype > 9 || t.op >= 5 + c->ops || t.root < 0 || t.root >= c->room->size) return INVALID_ARGUMENT;
	size_t bytes = t.n * sizes[t.dtype];
	t.comm = c, t.from = cuda.host(from, times * bytes), t.to = cuda.host(to, others * bytes);
	if (t.op >= 5) t.factor = c->factor[t.op - 5];
	return t.from && t.to ? queue(c, t, stream) : INVALID_ARGUMENT;
}

API Result ncclAllReduce(uint64_t s, uint64_t d, size_t n, int dtype, int op, Comm *c, void *stream) { MEMBER(c); return submit(c, (Task){ .kind = ALL_REDUCE, .dtype = dtype, .op = op, .n = n }, s, 1, d, 1, stream); }
API Result ncclReduce(uint64_t s, uint64_t d, size_t n, int dtype, int op, int root, Comm *c, void *stream) { MEMBER(c); return submit(c, (Task){ .kind = REDUCE, .dtype = dtype, .op = op, .n = n, .root = root }, s, 1, d, 1, stream); }
API Result ncclReduceScatter(uint64_t s, uint64_t d, size_t n, int dtype, int op, Comm *c, void *stream) { MEMBER(c); return submit(c, (Task){ .kind = REDUCE_SCATTER, .dtype = dtype, .op = op, .n = n }, s, c->room->size, d, 1, stream); }
API Result ncclAllGather(uint64_t s, uint64_t d, size_t n, int dtype, Comm *c, void *stream) { MEMBER(c); return submit(c, (Task){ .kind = ALL_GATHER, .dtype = dtype, .n = n }, s, 1, d, c->room->size, stream); }
API Result ncclBroadcast(uint64_t s, uint64_t d, size_t n, int dtype, int root, Comm *c, void *stream) { MEMBER(c); return submit(c, (Task){ .kind = BROADCAST, .dtype = dtype, .n = n, .root = root }, s, 1, d, 1, stream); }

API Result ncclRedOpCreatePreMulSum(int *op, void *factor, int dtype, int residence, Comm *c) {
	MEMBER(c);
	if (residence != 1 || c->ops == OPS) return INVALID_ARGUMENT;
	// The factor is an element: it is multiplied into a one that is.
	union { uint64_t u; int64_t i; double f; float g; } x = { 0 };
	memcpy(&x, factor, sizes[dtype]);
	switch (dtype) {
	case 0: c->factor[c->ops] = (int8_t)x.i; break;
	case 2: c->factor[c->ops] = (int32_t)x.i; break;
	case 4: c->factor[c->ops] = x.i; break;
	case 6: { _Float16 h; memcpy(&h, factor, 2); c->factor[c->ops] = h; break; }
	case 7: c->factor[c->ops] = x.g; break;
	case 8: c->factor[c->ops] = x.f; break;
	case 9: x.u <<= 16; c->factor[c->ops] = x.g; break;
	default: c->factor[c->ops] = x.u;
	}
	*op = 5 + c->ops++;
	return OK;
}
API Result ncclRedOpDestroy(int op, Comm *c) { MEMBER(c); if (op != 4 + c->ops) return INVALID_ARGUMENT; c->ops--; return OK; }

// ---- groups, of sends and receives only

API Result ncclGroupStart(void) { TOLD; depth++; group = NULL; return OK; }
static Result move(Comm *c, int send, uint64_t at, size_t n, int dtype, int peer, void *stream) {
	if (!depth || peer < 0 || peer >= c->room->size) return INVALID_USAGE;
	Move m = { send, peer, cuda.host(at, n * sizes[dtype]), n * sizes[dtype] };
	if (!m.at) return INVALID_ARGUMENT;
	if (!group) (group = calloc(1, sizeof *group))->comm = c, group->kind = EXCHANGE;
	if (group->comm != c || group->moves == MOVES) return INVALID_USAGE;
	group->move[group->moves++] = m;
	group_stream = stream;
	return OK;
}
API Result ncclSend(uint64_t at, size_t n, int dtype, int peer, Comm *c, void *stream) { MEMBER(c); return move(c, 1, at, n, dtype, peer, stream); }
API Result ncclRecv(uint64_t at, size_t n, int dtype, int peer, Comm *c, void *stream) { MEMBER(c); return move(c, 0, at, n, dtype, peer, stream); }
API Result ncclGroupEnd(void) {
	if (!depth) return INVALID_USAGE;
	depth--;
	Task *t = group;
	group = NULL;
	Result code = t ? queue(t->comm, *t, group_stream) : OK;
	free(t);
	Result failed = told(__func__);
	return failed ? failed : code;
}
