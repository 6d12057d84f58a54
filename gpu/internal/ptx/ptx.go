// Package ptx interprets kernels as they are shipped, in tests: PTX text, of which it knows
// those instructions that the kernels use. So what is shipped, and not only what it was made
// of, is run where no device is. The language is NVIDIA's "Parallel Thread Execution ISA".
package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A Kernel is a list of instructions, and where its labels are.
type Kernel struct {
	code   []instruction
	labels map[string]int
}

type instruction struct {
	guard    string // the predicate, "" for always
	negated  bool
	name     []string // "setp", "lt", "u64"
	operands []string
}

var (
	instructionLine = regexp.MustCompile(`^(?:@(!?)(%p\d+) )?([a-z][\w.]*)\s*(.*);$`)
	labelLine       = regexp.MustCompile(`^(\$\w+):$`)
)

// Parse is the kernels of a text by their names.
func Parse(text string) (map[string]*Kernel, error) {
	all := make(map[string]*Kernel)
	var k *Kernel
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "//")
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, ".visible .entry "); ok {
			name, _, _ := strings.Cut(rest, "(")
			k = &Kernel{labels: make(map[string]int)}
			all[name] = k
			continue
		}
		if k == nil || line == "" || strings.ContainsAny(line[:1], ".{})") {
			continue
		}
		if m := labelLine.FindStringSubmatch(line); m != nil {
			k.labels[m[1]] = len(k.code)
			continue
		}
		m := instructionLine.FindStringSubmatch(strings.ReplaceAll(line, "\t", " "))
		if m == nil {
			return nil, fmt.Errorf("no instruction: %q", line)
		}
		i := instruction{guard: m[2], negated: m[1] != "", name: strings.Split(m[3], ".")}
		for o := range strings.SplitSeq(m[4], ",") {
			i.operands = append(i.operands, strings.Trim(strings.TrimSpace(o), "[]"))
		}
		k.code = append(k.code, i)
	}
	return all, nil
}

// A thread is one that runs a kernel. Registers hold bits, of any type.
type thread struct {
	*Kernel
	registers map[string]uint64
	params    []uint64
	memory    [][]byte // at addresses from base, 2 × base and so on
	failure   error
}

const base = 1 << 40

// Run launches a kernel of so many blocks of so many threads, one after the other. Its
// arguments are memory, as []byte, or numbers, as uint64 or float32.
func (k *Kernel) Run(blocks, threads int, args ...any) error {
	var memory [][]byte
	params := make([]uint64, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case []byte:
			memory = append(memory, a)
			params[i] = base * uint64(len(memory))
		case float32:
			params[i] = uint64(math.Float32bits(a))
		case uint64:
			params[i] = a
		default:
			return fmt.Errorf("ptx: argument %d is of type %T", i, a)
		}
	}
	for b := range blocks {
		for i := range threads {
			t := &thread{Kernel: k, params: params, memory: memory}
			t.registers = map[string]uint64{"%ctaid.x": uint64(b), "%tid.x": uint64(i), "%ntid.x": uint64(threads), "%nctaid.x": uint64(blocks)}
			for pc := 0; pc >= 0 && t.failure == nil; {
				pc = t.step(pc)
			}
			if t.failure != nil {
				return t.failure
			}
		}
	}
	return nil
}

// step runs the instruction at pc, and gives the next, -1 for none.
func (t *thread) step(pc int) int {
	i := t.code[pc]
	if i.guard != "" && (t.registers[i.guard] != 0) == i.negated {
		return pc + 1
	}
	o := i.operands
	switch i.name[0] {
	case "ret":
		return -1
	case "bra":
		return t.labels[o[0]]
	case "st":
		t.store(i.name[2], t.value(o[0]), t.value(o[1]))
	case "ld":
		if i.name[1] == "param" {
			t.registers[o[0]] = t.parameter(o[1])
		} else {
			t.registers[o[0]] = t.load(i.name[2], t.value(o[1]))
		}
	default:
		values := make([]uint64, len(o)-1)
		for k := range values {
			values[k] = t.value(o[k+1])
		}
		t.registers[o[0]] = t.compute(i.name, values)
	}
	return pc + 1
}

// parameter is that of a name such as fold_param_2.
func (t *thread) parameter(name string) uint64 {
	_, digits, _ := strings.Cut(name, "_param_")
	i, err := strconv.Atoi(digits)
	if err != nil || i >= len(t.params) {
		t.failure = fmt.Errorf("ptx: no argument for %s", name)
		return 0
	}
	return t.params[i]
}

// value is an operand's: a register's, a number, or an address that is their sum.
func (t *thread) value(o string) uint64 {
	if register, offset, ok := strings.Cut(o, "+"); ok {
		return t.value(register) + t.value(offset)
	}
	if v, ok := t.registers[o]; ok {
		return v
	}
	var v uint64
	var err error
	switch {
	case strings.HasPrefix(o, "0f"), strings.HasPrefix(o, "0d"):
		v, err = strconv.ParseUint(o[2:], 16, 64)
	default:
		var signed int64
		signed, err = strconv.ParseInt(o, 0, 64)
		v = uint64(signed)
	}
	if err != nil {
		t.failure = fmt.Errorf("operand %q: %w", o, err)
	}
	return v
}

// at is the memory of an element.
func (t *thread) at(kind string, address uint64) []byte {
	n := uint64(size(kind) / 8)
	area, off := address/base, address%base
	if area < 1 || area > uint64(len(t.memory)) || off+n > uint64(len(t.memory[area-1])) || off%n != 0 {
		t.failure = fmt.Errorf("%s at %#x", kind, address)
		return make([]byte, n)
	}
	return t.memory[area-1][off : off+n]
}

func (t *thread) load(kind string, address uint64) uint64 {
	var p [8]byte
	copy(p[:], t.at(kind, address))
	return extend(kind, binary.LittleEndian.Uint64(p[:]))
}

func (t *thread) store(kind string, address, value uint64) {
	copy(t.at(kind, address), binary.LittleEndian.AppendUint64(nil, value))
}
