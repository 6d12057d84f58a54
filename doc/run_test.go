package doc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"peermesh/internal/programs"
)

const (
	longForm  = "PEERMESH_DOC"   // runs long blocks too, on the real MNIST
	blockTime = 90 * time.Second // of a block, and
	longTime  = 30 * time.Minute // of one in the long form, on a machine with much else to do
	cleanTime = 5 * time.Second  // for what a block leaves running to end
)

// run are the programs that blocks run.
var run = []string{"peermesh/cmd/peer", "peermesh/examples/tutorial", "peermesh/examples/launched", "peermesh/examples/hello", "peermesh/examples/wan"}

// A workshop is where the blocks of all pages are run.
type workshop struct {
	bin, data string // folders of the programs, and of small images
	long      bool
}

// workshopOf builds the programs once, without the race detector, as people would.
func workshopOf(t *testing.T) *workshop {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	w := &workshop{bin: t.TempDir(), data: digits(t), long: os.Getenv(longForm) != ""}
	if err := programs.Put(t.Context(), w.bin, run...); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.bin, "go"), []byte(goScript), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

// goScript stands for go: it runs what has been built, and leaves all else to the real one.
const goScript = `#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
"run ./"*) program="$here/${2##*/}"; if [ -x "$program" ]; then shift 2; exec "$program" "$@"; fi ;;
"install ./cmd/peer") exit 0 ;;
esac
exec "$REAL_GO" "$@"
`

// folder is like the repository's root: it has all that is there, and what commands write
// goes elsewhere.
func (w *workshop) folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path, err := filepath.Abs(filepath.Join(root, e.Name()))
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, e.Name()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// environment is that of the commands: small images, the programs before all others, and a
// place for files that are soon gone. That is not the folder itself: go has no use for a
// module there.
func (w *workshop) environment(t *testing.T, home string) []string {
	t.Helper()
	brief := filepath.Join(home, "brief")
	if err := os.MkdirAll(brief, 0o755); err != nil {
		t.Error(err) // not from the test's goroutine
	}
	realGo, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+w.bin+":"+os.Getenv("PATH"), "REAL_GO="+realGo, "NO_COLOR=1")
	if !w.long {
		env = append(env, "MNIST_DIR="+w.data)
	}
	return append(env, "TMPDIR="+brief)
}

// TestCommands runs every block of every page, those of a page in one folder, one after
// the other.
func TestCommands(t *testing.T) {
	w := workshopOf(t)
	for _, p := range pages(t) {
		t.Run(p.path, func(t *testing.T) {
			t.Parallel() // no two pages name the same port
			dir := ""
			for _, b := range p.blocks {
				if b.kind != "console" {
					continue
				}
				if dir == "" {
					dir = w.folder(t)
				}
				t.Run(fmt.Sprint(b.line), func(t *testing.T) { w.run(t, dir, b) })
			}
		})
	}
}

// run runs a block, and compares.
func (w *workshop) run(t *testing.T, dir string, b block) {
	commands, printed := b.script()
	w.flags(t, commands)
	if slices.Contains(b.words, "long") && !w.long {
		t.Skipf("takes long: set %s, or make pages", longForm)
	}
	for _, need := range b.needs() {
		if why := lacks(t.Context(), need); why != "" {
			t.Skipf("needs %s: %s", need, why)
		}
	}
	limit := blockTime
	if w.long {
		limit = longTime
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := w.shell(ctx, t, dir, commands)
	if fails := slices.Contains(b.words, "fails"); (err != nil) != fails {
		t.Errorf("%v, and that it fails is %v on the page:\n%s", err, fails, out)
	}
	if missing := absent(printed, out); len(missing) > 0 && !slices.Contains(b.words, "dated") {
		t.Errorf("never printed: %q\nbut\n%s", missing, out)
	}
}

// absent returns what is shown and was not printed.
func absent(shown []string, out string) (missing []string) {
	for _, line := range shown {
		pattern := regexp.MustCompile(` +`).ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(line)), ` +`)
		pattern = strings.ReplaceAll(pattern, "…", ".*")
		if !regexp.MustCompile(`(?m)^\s*` + pattern + `\s*$`).MatchString(out) {
			missing = append(missing, line)
		}
	}
	return missing
}

// shell runs commands: those of this machine as one script, else one script a machine, at
// the same time.
func (w *workshop) shell(ctx context.Context, t *testing.T, dir string, commands []command) (string, error) {
	scripts := make(map[string]string)
	for _, c := range commands {
		scripts[c.machine] += c.line + "\n"
	}
	var prefix map[string][]string
	if scripts[""] == "" {
		prefix = machines(t)
	}
	var mu sync.Mutex
	var all bytes.Buffer
	var first error
	var wg sync.WaitGroup
	for machine, script := range scripts {
		home := dir
		if machine != "" {
			home = w.folder(t)
		}
		words := append(slices.Clone(prefix[machine]), "bash", "-e", "-c", script+"wait\n")
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, words[0], words[1:]...)
			cmd.Dir, cmd.Env, cmd.WaitDelay = home, w.environment(t, home), cleanTime
			alone(cmd)
			out, err := cmd.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			all.Write(out)
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	return all.String(), first
}

// flags asks peer whether it knows the flags that it is given, in blocks that are skipped too.
func (w *workshop) flags(t *testing.T, commands []command) {
	t.Helper()
	verbs := regexp.MustCompile(`(?s)\bpeer(?: (launch|train|bench|diagnose|doctor|schedule|sim|id))?((?: (?:[^|;&\n-]|-[^-]|--\S)[^|;&\n]*)?)`)
	for _, c := range commands {
		for _, m := range verbs.FindAllStringSubmatch(c.line, -1) {
			own, _, _ := strings.Cut(m[2]+" ", " -- ")
			for _, flag := range regexp.MustCompile(`(^|\s)(--[a-z][-a-z0-9]*)`).FindAllStringSubmatch(own, -1) {
				if !strings.Contains(w.help(t, m[1]), " "+flag[2]) {
					t.Errorf("%s: peer %s does not know %s", c.line, m[1], flag[2])
				}
			}
		}
	}
}

var helps sync.Map // of each verb

func (w *workshop) help(t *testing.T, verb string) string {
	t.Helper()
	if verb == "" {
		verb = "train"
	}
	if text, ok := helps.Load(verb); ok {
		return text.(string)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(w.bin, "peer"), verb, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("peer %s --help: %v", verb, err)
	}
	helps.Store(verb, string(out))
	return string(out)
}

func TestAbsent(t *testing.T) {
	out := "[0] rank 0 of 2 is 12D3K\nloss 1.5,  done\n"
	got := absent([]string{"[0] rank 0 of 2 is …", "loss …, done", "loss", "rank 0 of 2"}, out)
	if !slices.Equal(got, []string{"loss", "rank 0 of 2"}) {
		t.Errorf("%q", got)
	}
}
