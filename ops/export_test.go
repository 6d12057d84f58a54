package ops

import "peermesh/ops/schedule"

// EncodeObject is how an object travels.
func EncodeObject[T any](v T) []byte {
	p, err := encodeObject(v)
	if err != nil {
		panic(err)
	}
	return p
}

// DecodeObject is what is made of it.
func DecodeObject[T any](p []byte) (T, error) { return decodeObject[T](p) }

// Tournament is who meets whom.
var Tournament = tournament

// Islands are who are near each other.
func Islands(n int, l schedule.Links) [][]int {
	groups, _ := islands(n, l)
	return groups
}

// NewMeasured makes links of figures.
var NewMeasured = newMeasured

// AlgorithmNames are those that an operation has.
func AlgorithmNames(k Kind) []string { return algorithmNames(k) }

// LanesFor is how many lanes a schedule is cut into.
var LanesFor = lanesFor
