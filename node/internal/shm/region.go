//go:build linux && (amd64 || arm64)

package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The shape of the shared memory: two pages of news, one for each side, then the
// blocks, then the rings. SPEC.md draws it. All of it is part of the protocol.
const (
	// RingSize is how many bytes a stream carries ahead of its reader.
	RingSize = 1 << 20
	// StreamsEach bounds the streams that one side may have open.
	StreamsEach = 2048
	slots       = 2 * StreamsEach

	pageSize   = 4 << 10
	newsRung   = 0   // uint32: a bell is on its way
	newsCode   = 8   // uint64: closed | code, by the side that closes
	newsSeat   = 16  // uint32: the processor on which the side that writes it last waited
	newsBits   = 64  // slots bits: those with something new
	blockSize  = 256 // four cache lines
	blockHead  = 0   // uint64: bytes written
	blockTail  = 64  // uint64: bytes read
	blockFlags = 128 // uint64: generation << 32 | flags
	blockCode  = 136 // uint32: of a reset
	blockReads = 192 // uint32: the reader sleeps
	blockWrite = 196 // uint32: the writer sleeps

	blocksAt   = 2 * pageSize
	ringsAt    = blocksAt + slots*2*blockSize
	regionSize = ringsAt + slots*2*RingSize
)

// seals are those of a region's file: its size will never change, so no access
// within it can fault, whatever the other side does to the file. A system that lets
// no memory be run (vm.memfd_noexec of Linux) adds F_SEAL_EXEC of itself.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// errMemory is the error of a file that cannot be a region.
var errMemory = errors.New("shm: the memory that came is not as agreed")

// A region is the memory of a connection, mapped. It is sparse: what is never
// used costs nothing but addresses.
type region struct {
	mem []byte
	// refs counts the connection, its goroutine, and the streams that are in use;
	// with the last of them the mapping goes.
	refs atomic.Int64
}

// newFile makes a region's memory.
func newFile() (fd int, err error) {
	fd, err = unix.MemfdCreate("peermesh", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("shm: making memory: %w", err)
	}
	if err = unix.Ftruncate(fd, regionSize); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		_ = unix.Close(fd) // the other error says more
		return -1, fmt.Errorf("shm: sealing memory: %w", err)
	}
	return fd, nil
}

// checkFile makes sure that a file that came from outside is what newFile makes.
// Huge pages are refused: touching one may fault when there are none left.
func checkFile(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%w: %w", errMemory, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != regionSize {
		return fmt.Errorf("%w: mode %o, %d bytes", errMemory, st.Mode, st.Size)
	}
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	switch {
	case err != nil:
		return fmt.Errorf("%w: asking for its seals: %w", errMemory, err)
	case got&^unix.F_SEAL_EXEC != seals:
		return fmt.Errorf("%w: seals %#x", errMemory, got)
	}
	var fs unix.Statfs_t
	switch err := unix.Fstatfs(fd, &fs); {
	case err != nil:
		return fmt.Errorf("%w: asking for its file system: %w", errMemory, err)
	case fs.Type != unix.TMPFS_MAGIC:
		return fmt.Errorf("%w: file system %#x", errMemory, fs.Type)
	}
	return nil
}

// mapRegion maps a file that newFile made or checkFile has approved.
func mapRegion(fd int) (*region, error) {
	mem, err := unix.Mmap(fd, 0, regionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("shm: mapping %d bytes: %w", regionSize, err)
	}
	_ = unix.Madvise(mem, unix.MADV_DONTDUMP) // a kernel that cannot only dumps more
	r := &region{mem: mem}
	r.refs.Store(1)
	return r, nil
}

func (r *region) retain() { r.refs.Add(1) }

func (r *region) release() {
	if r.refs.Add(-1) == 0 {
		if err := unix.Munmap(r.mem); err != nil {
			panic("shm: a mapping that is not one: " + err.Error())
		}
		r.mem = nil
	}
}

func (r *region) word64(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&r.mem[at])) }
func (r *region) word32(at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&r.mem[at])) }

// A block is what one side says of a stream. Only that side writes it, but for
// the two words that say who sleeps, which the waking side clears.
type block struct {
	head, tail, flags    *atomic.Uint64
	code, reader, writer *atomic.Uint32
}

func (r *region) block(slot, side int) block {
	at := blocksAt + (2*slot+side)*blockSize
	return block{head: r.word64(at + blockHead), tail: r.word64(at + blockTail), flags: r.word64(at + blockFlags),
		code: r.word32(at + blockCode), reader: r.word32(at + blockReads), writer: r.word32(at + blockWrite)}
}

// begin makes the block that of a new stream. The flags come last: with them the
// rest holds.
func (b block) begin(gen uint32, flags uint64) {
	b.head.Store(0)
	b.tail.Store(0)
	b.code.Store(0)
	b.reader.Store(0)
	b.writer.Store(0)
	b.flags.Store(uint64(gen)<<32 | flags)
}

// ring is the memory of what one side writes to a stream.
func (r *region) ring(slot, side int) []byte {
	at := ringsAt + (2*slot+side)*RingSize
	return r.mem[at : at+RingSize : at+RingSize]
}

// news is what one side has to look at.
type news struct {
	rung *atomic.Uint32
	code *atomic.Uint64
	seat *atomic.Uint32
	bits *[slots / 64]atomic.Uint64
}

func (r *region) news(side int) news {
	at := side * pageSize
	return news{rung: r.word32(at + newsRung), code: r.word64(at + newsCode), seat: r.word32(at + newsSeat),
		bits: (*[slots / 64]atomic.Uint64)(unsafe.Pointer(&r.mem[at+newsBits]))}
}

// forget gives the memory of a slot's rings back to the system.
func (r *region) forget(slot int) error {
	at := ringsAt + 2*slot*RingSize
	return unix.Madvise(r.mem[at:at+2*RingSize], unix.MADV_REMOVE)
}
