package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestMan has the page name every verb and flag, and man find nothing wrong with it.
func TestMan(t *testing.T) {
	status, page, errs := in("man")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %q", status, errs)
	}
	for _, want := range []string{".SS peer launch", `\-\-bootstrap`, `\-\-num\-machines`, ".SH EXIT STATUS", `\fB\-n\fR, \fB\-\-num\-processes\fR`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, "launched") {
		t.Error("the page names a hidden flag")
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff here")
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCompletionBash has bash itself complete some lines.
func TestCompletionBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	_, script, _ := in("completion", "bash")
	tests := []struct{ line, want string }{
		{"peer la", "launch"},
		{"peer launch --num-m", "--num-machines"},
		{"peer launch --restart on", "on-failure"},
		{"peer launch --restart = on", "on-failure"},
		{"peer --boot", "--bootstrap"},
		{"peer completion f", "fish"},
		{"peer train --num-m", ""},
	}
	for _, test := range tests {
		words := strings.Fields(test.line)
		ask := script + "\nCOMP_WORDS=(" + commandLine(slices.Clone(words)) + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _peer; echo \"${COMPREPLY[*]}\""
		out, err := exec.CommandContext(t.Context(), bash, "-c", ask).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != test.want {
			t.Errorf("%q becomes %q, %v; want %q", test.line, got, err, test.want)
		}
	}
}

// TestCompletionOthers looks at the scripts of shells that may not be here.
func TestCompletionOthers(t *testing.T) {
	_, zsh, _ := in("completion", "zsh")
	_, fish, _ := in("completion", "fish")
	if !strings.Contains(zsh, "bashcompinit") || !strings.Contains(zsh, "complete -o default -F _peer peer") {
		t.Error("zsh has no completion")
	}
	for _, want := range []string{"-l bootstrap -r", "'__fish_seen_subcommand_from launch' -l restart -x -a 'never on-failure'", "-f -a 'bash zsh fish'"} {
		if !strings.Contains(fish, want) {
			t.Errorf("fish lacks %q", want)
		}
	}
	status, _, errs := in("completion", "csh")
	if isOneLine(t, errs); status != statusUsage {
		t.Errorf("csh: status %d", status)
	}
	for _, shell := range []string{"zsh", "fish"} {
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.CommandContext(t.Context(), path, "-n")
			cmd.Stdin = strings.NewReader(map[string]string{"zsh": zsh, "fish": fish}[shell])
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", shell, err, out)
			}
		}
	}
}
