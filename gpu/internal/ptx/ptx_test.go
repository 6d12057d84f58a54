package ptx

import (
	"strings"
	"testing"
)

// text is a kernel of some lines.
func text(lines ...string) string {
	return ".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\t" + strings.Join(lines, "\n\t") + "\n\tret;\n}\n"
}

// TestRun sums what the threads of a kernel store.
func TestRun(t *testing.T) {
	all, err := Parse(text("ld.param.u64 %rd1, [k_param_0];", "mov.u32 %r1, %tid.x;", "cvt.u64.u32 %rd2, %r1;",
		"add.u64 %rd1, %rd1, %rd2;", "st.global.u8 [%rd1], 7;"))
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 4)
	if err := all["k"].Run(1, 3, p); err != nil || string(p) != "\x07\x07\x07\x00" {
		t.Errorf("%v, %v", p, err)
	}
}

// TestRefused has text that is none, and kernels that do what none does.
func TestRefused(t *testing.T) {
	if _, err := Parse(text("add.u32 without an end")); err == nil || !strings.Contains(err.Error(), "no instruction") {
		t.Errorf("a line that is none: %v", err)
	}
	for line, want := range map[string]string{
		"popc.u32 %r1, 1, 2;":             "instruction [popc u32]",
		"sin.f32 %f1, 0f3F800000;":        "instruction [sin f32]",
		"setp.odd.u32 %p1, 1, 2;":         "comparison odd",
		"ld.param.u64 %rd1, [k_param_3];": "no argument for k_param_3",
		"mov.u32 %r1, %r2;":               `operand "%r2"`,
		"ld.global.u32 %r1, [4096];":      "u32 at 0x1000",
		"st.global.u32 [4096], 1;":        "u32 at 0x1000",
	} {
		all, err := Parse(text(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := all["k"].Run(1, 1, make([]byte, 8)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	all, err := Parse(text())
	if err != nil {
		t.Fatal(err)
	}
	if err := all["k"].Run(1, 1, "words"); err == nil || !strings.Contains(err.Error(), "argument 0 is of type string") {
		t.Errorf("an argument that is none: %v", err)
	}
}
