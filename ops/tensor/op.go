package tensor

import "fmt"

// An Op folds two elements into one. Every Op is commutative, bit for bit save
// for which of two NaNs survives, so a reduction's result depends on the shape
// of its summation tree alone and not on who was left and who was right.
//
// The values travel in messages and are never renumbered. The zero Op is none,
// which is what an operation without arithmetic carries.
type Op uint8

// The reductions.
const (
	Sum     Op = 1 // integers wrap
	Product Op = 2 // integers wrap
	Min     Op = 3 // NaN wins; -0 is less than +0
	Max     Op = 4 // NaN wins; +0 is greater than -0
)

// opNames has a row an op; its kernels are the row of the same index in columnOf.
var opNames = [...]string{
	Sum:     "sum",
	Product: "product",
	Min:     "min",
	Max:     "max",
}

// Valid reports whether o is one of the reductions above.
func (o Op) Valid() bool {
	return int(o) < len(opNames) && opNames[o] != ""
}

// String is the name in lower case, as in "sum".
func (o Op) String() string {
	if !o.Valid() {
		return fmt.Sprintf("op(%d)", uint8(o))
	}
	return opNames[o]
}
