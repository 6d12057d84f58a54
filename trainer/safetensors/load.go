package safetensors

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"peermesh/trainer"
)

// LoadOptions say how names meet. The zero value wants those of the file and of
// the parameters to be the same.
type LoadOptions struct {
	// Rename gives the name in the file of a parameter of that name. Nil: the same.
	Rename func(name string) string
	// Partial leaves parameters that the file lacks as they are, and tensors that
	// no parameter wants unread. A shape that differs is an error all the same.
	Partial bool
}

// A LoadError says where a file and the parameters that it was to fill differ. The
// names are the file's, each list in order.
type LoadError struct {
	Missing    []string // wanted, but not in the file
	Unexpected []string // in the file, but not wanted
	Different  []string // in both, with what is wrong: `"fc.weight": its shape is …`
}

func (e *LoadError) Error() string {
	var parts []string
	for _, p := range []struct {
		what  string
		names []string
	}{{"missing", e.Missing}, {"unexpected", e.Unexpected}, {"different", e.Different}} {
		if n := len(p.names); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, p.what, some(p.names)))
		}
	}
	return "safetensors: the file's tensors are not the model's: " + strings.Join(parts, ", ")
}

// maxNamed keeps a model of another kind from filling the screen: it is how many names of a kind an error's text has; the fields have all.
const maxNamed = 5

func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxNamed], ", ") + ", …"
}

// Load fills the values of params with the tensors of their names, converted to
// their element types. If names or shapes differ it changes nothing and returns a
// *LoadError. After another error, which comes from reading or of an integer that
// does not fit, the values are unspecified.
func (f *File) Load(params []*trainer.Param, o LoadOptions) error {
	// All is compared before anything is read, as a model that is half of one file and half of
	// another is worse than an error.
	type pair struct {
		param *trainer.Param
		info  Info
	}
	var pairs []pair
	var wrong LoadError
	wanted := make(map[string]bool, len(params))
	for _, p := range params {
		name := p.Name
		if o.Rename != nil {
			name = o.Rename(name)
		}
		if wanted[name] { // a Rename that is not one to one, and one of the two would be left
			return fmt.Errorf("safetensors: two parameters want the tensor %q", name)
		}
		wanted[name] = true
		info, ok := f.Lookup(name)
		if !ok {
			wrong.Missing = append(wrong.Missing, name)
			continue
		}
		if err := fits(p.Value, info); err != nil {
			wrong.Different = append(wrong.Different, fmt.Sprintf("%q: %v", name, err))
			continue
		}
		pairs = append(pairs, pair{p, info})
	}
	for _, t := range f.tensors {
		if !wanted[t.Name] {
			wrong.Unexpected = append(wrong.Unexpected, t.Name)
		}
	}
	if o.Partial {
		wrong.Missing, wrong.Unexpected = nil, nil
	}
	if len(wrong.Missing)+len(wrong.Unexpected)+len(wrong.Different) > 0 {
		for _, names := range [][]string{wrong.Missing, wrong.Unexpected, wrong.Different} {
			slices.Sort(names)
		}
		return &wrong
	}
	// A disk likes to be read from front to back.
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.info.begin, b.info.begin) })
	for _, p := range pairs {
		if err := f.fill(p.param.Value, p.info); err != nil {
			return err
		}
	}
	return nil
}

// Params reads all tensors, in the order in which they lie in the file, as
// parameters without gradients: for a file whose model nobody has at hand, to convert it or
// to compare. All of them are in memory then.
func (f *File) Params() ([]*trainer.Param, error) {
	params := make([]*trainer.Param, 0, len(f.tensors))
	for _, i := range f.tensors {
		t, err := f.Read(i.Name)
		if err != nil {
			return nil, err
		}
		params = append(params, &trainer.Param{Name: i.Name, Value: t})
	}
	return params, nil
}
