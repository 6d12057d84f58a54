package planet

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseThereAndBack(t *testing.T) {
	m := Earth()
	got, err := Parse("# the planet\n" + m.String())
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%v became %v, %v", m, got, err)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "0 regions",
		"rate 0\nregion a 1ms":              "line 1: a rate",
		"region a 1ms\nregion a 1ms":        "line 2: region a comes twice",
		"region a 1ms\nregion b 1ms":        "no line says how far a is from b",
		"region a -1ms":                     `"-1ms": want a time`,
		"region a 1ms\nrtt a c 1ms":         "line 2: a and c are no two regions",
		"fly":                               "line 1: want rate",
		"region a 1ms\nrtt a a 1ms":         "a and a are no two",
		strings.Repeat("#", maxText+1):      "at most",
		strings.Repeat("region a 1ms\n", 2): "twice",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Earth().String())
	f.Add("rate 1e3\nregion a 1ms\nregion b 2ms # near\nrtt b a 3ms")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(m.String())
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%q became %q, %v", m, again, err)
		}
	})
}
