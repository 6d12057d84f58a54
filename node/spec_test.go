package node

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// specValue is the code in a line of SPEC.md of the form "- what: `code`".
func specValue(t *testing.T, what string) string {
	t.Helper()
	spec, err := os.ReadFile("SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(spec), "- "+what+": `")
	value, _, closed := strings.Cut(rest, "`")
	if !ok || !closed {
		t.Fatalf("SPEC.md has no %q", what)
	}
	return value
}

// The specification states the bounds and codes that the code has.
func TestSpec(t *testing.T) {
	spec, err := os.ReadFile("SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		fmt.Sprintf("| MinSecret | %d |", MinSecret),
		fmt.Sprintf("| maxSecret | %d |", maxSecret),
		fmt.Sprintf("| proofTimeout | %s |", proofTimeout),
		fmt.Sprintf("| firstTimeout | %s |", firstTimeout),
		fmt.Sprintf("| farewell | %s |", farewell),
		fmt.Sprintf("| %#x |", uint32(CodeSecret)),
		fmt.Sprintf("| %#x |", uint32(CodeNotAllowed)),
		"`" + proofProtocol + "`", "`" + pskInfo + "`", "`" + proofInfo + "`", "`" + askerLabel + "`", "`" + answererLabel + "`",
	} {
		if !strings.Contains(string(spec), line) {
			t.Errorf("SPEC.md lacks %q", line)
		}
	}
}
