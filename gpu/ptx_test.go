package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"peermesh/ops/tensor"
)

// A ptxKernel is one of kernels.ptx as an interpreter has it: a list of instructions, and
// where its labels are. So what is shipped, and not only what it was made of, is run where
// no device is. The language is NVIDIA's "Parallel Thread Execution ISA"; here are
// those instructions that the kernels use.
type ptxKernel struct {
	code   []ptxInstruction
	labels map[string]int
}

type ptxInstruction struct {
	guard    string // the predicate, "" for always
	negated  bool
	name     []string // "setp", "lt", "u64"
	operands []string
}

var (
	ptxLine  = regexp.MustCompile(`^(?:@(!?)(%p\d+) )?([a-z][\w.]*)\s*(.*);$`)
	ptxLabel = regexp.MustCompile(`^(\$\w+):$`)
)

// parsePTX is the kernels of a text by their names.
func parsePTX(text string) (map[string]*ptxKernel, error) {
	all := make(map[string]*ptxKernel)
	var k *ptxKernel
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "//")
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, ".visible .entry "); ok {
			name, _, _ := strings.Cut(rest, "(")
			k = &ptxKernel{labels: make(map[string]int)}
			all[name] = k
			continue
		}
		if k == nil || line == "" || strings.ContainsAny(line[:1], ".{})") {
			continue
		}
		if m := ptxLabel.FindStringSubmatch(line); m != nil {
			k.labels[m[1]] = len(k.code)
			continue
		}
		m := ptxLine.FindStringSubmatch(strings.ReplaceAll(line, "\t", " "))
		if m == nil {
			return nil, fmt.Errorf("no instruction: %q", line)
		}
		i := ptxInstruction{guard: m[2], negated: m[1] != "", name: strings.Split(m[3], ".")}
		for o := range strings.SplitSeq(m[4], ",") {
			i.operands = append(i.operands, strings.Trim(strings.TrimSpace(o), "[]"))
		}
		k.code = append(k.code, i)
	}
	return all, nil
}

// A ptxThread is one that runs a kernel. Registers hold bits, of any type.
type ptxThread struct {
	*ptxKernel
	registers map[string]uint64
	params    [3]uint64
	memory    [2][]byte // at addresses from ptxBase and 2 × ptxBase on
	failure   error
}

const ptxBase = 1 << 40

// run launches a kernel of so many blocks of so many threads, one after the other. The
// second operand is a message, or else the bits of a step's number.
func (k *ptxKernel) run(blocks, threads int, dst, src []byte, operand uint64, n int) error {
	for b := range blocks {
		for i := range threads {
			t := &ptxThread{ptxKernel: k, params: [3]uint64{ptxBase, operand, uint64(n)}, memory: [2][]byte{dst, src}}
			if src != nil {
				t.params[1] = 2 * ptxBase
			}
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
func (t *ptxThread) step(pc int) int {
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
			t.registers[o[0]] = t.params[o[1][len(o[1])-1]-'0']
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

// value is an operand's: a register's, or a number.
func (t *ptxThread) value(o string) uint64 {
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
func (t *ptxThread) at(kind string, address uint64) []byte {
	n := uint64(ptxBits(kind) / 8)
	area, off := address/ptxBase, address%ptxBase
	if area < 1 || area > 2 || off+n > uint64(len(t.memory[area-1])) || off%n != 0 {
		t.failure = fmt.Errorf("%s at %#x", kind, address)
		return make([]byte, n)
	}
	return t.memory[area-1][off : off+n]
}

func (t *ptxThread) load(kind string, address uint64) uint64 {
	var p [8]byte
	copy(p[:], t.at(kind, address))
	return ptxExtend(kind, binary.LittleEndian.Uint64(p[:]))
}

func (t *ptxThread) store(kind string, address, value uint64) {
	copy(t.at(kind, address), binary.LittleEndian.AppendUint64(nil, value))
}

// ptxBits is the size of a type, as in u64.
func ptxBits(kind string) int {
	if kind == "pred" {
		return 1
	}
	n, _ := strconv.Atoi(kind[1:]) // a type that is none has no bits, and no instruction
	return n
}

// ptxExtend is the value of a type's bits, with their sign if it has one.
func ptxExtend(kind string, v uint64) uint64 {
	unused := 64 - ptxBits(kind)
	if kind[0] == 's' {
		return uint64(int64(v<<unused) >> unused)
	}
	return v << unused >> unused
}

// compute is an instruction that only computes. The last part of a name is its type.
func (t *ptxThread) compute(name []string, v []uint64) uint64 {
	kind := name[len(name)-1]
	switch name[0] {
	case "mov", "cvta":
		return v[0]
	case "cvt":
		return ptxConvert(name[len(name)-2], kind, v[0])
	case "selp":
		if v[2] != 0 {
			return v[0]
		}
		return v[1]
	case "bfe":
		return v[0] >> v[1] & (1<<v[2] - 1)
	}
	for i := range v {
		v[i] = ptxExtend(kind, v[i])
	}
	if kind == "f32" || kind == "f64" {
		return t.float(name, kind, v)
	}
	if kind[0] == 's' {
		return t.integer(name, kind, int64(v[0]) < int64(v[1]), v, func() uint64 { return uint64(int64(v[0]) / int64(v[1])) })
	}
	return t.integer(name, kind, v[0] < v[1], v, func() uint64 { return v[0] / v[1] })
}

func ptxConvert(to, from string, v uint64) uint64 {
	switch {
	case from == "f16":
		return uint64(math.Float32bits(tensor.F16(v).Float32()))
	case to == "f16":
		return uint64(tensor.ToF16(math.Float32frombits(uint32(v))))
	}
	return ptxExtend(to, ptxExtend(from, v))
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// integer is an instruction of integers, of which one may be less than the other.
func (t *ptxThread) integer(name []string, kind string, less bool, v []uint64, quotient func() uint64) uint64 {
	var r uint64
	switch name[0] {
	case "setp":
		return t.compare(name[1], less, v[0] == v[1], false)
	case "mul":
		if name[1] == "wide" {
			return v[0] * v[1]
		}
		r = v[0] * v[1]
	case "add":
		r = v[0] + v[1]
	case "div":
		r = quotient()
	case "and":
		r = v[0] & v[1]
	case "or":
		r = v[0] | v[1]
	case "xor":
		r = v[0] ^ v[1]
	case "shl":
		r = v[0] << v[1]
	case "shr":
		r = v[0] >> v[1]
	case "min", "max":
		r = v[1]
		if less == (name[0] == "min") {
			r = v[0]
		}
	default:
		t.failure = fmt.Errorf("instruction %v", name)
	}
	return ptxExtend(kind, r)
}

// compare is a comparison; not is set for what cannot be compared.
func (t *ptxThread) compare(how string, less, same, not bool) uint64 {
	switch how {
	case "lt":
		return truth(less)
	case "gt":
		return truth(!less && !same && !not)
	case "ge":
		return truth(!less && !not)
	case "eq":
		return truth(same)
	case "ne":
		return truth(!same)
	case "nan":
		return truth(not)
	case "num":
		return truth(!not)
	}
	t.failure = fmt.Errorf("comparison %s", how)
	return 0
}

// float is an instruction of floats, which rounds once.
func (t *ptxThread) float(name []string, kind string, v []uint64) uint64 {
	if kind == "f64" {
		a, b := math.Float64frombits(v[0]), math.Float64frombits(v[1])
		return ptxFloat(t, name, a, b, math.Float64bits)
	}
	a, b := math.Float32frombits(uint32(v[0])), math.Float32frombits(uint32(v[1]))
	return ptxFloat(t, name, a, b, func(r float32) uint64 { return uint64(math.Float32bits(r)) })
}

func ptxFloat[T float32 | float64](t *ptxThread, name []string, a, b T, bits func(T) uint64) uint64 {
	switch name[0] {
	case "setp":
		return t.compare(name[1], a < b, a == b, a != a || b != b)
	case "add":
		return bits(a + b)
	case "mul":
		return bits(a * b)
	case "div":
		return bits(a / b)
	}
	t.failure = fmt.Errorf("instruction %v", name)
	return 0
}
