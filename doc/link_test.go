package doc

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// link is [text](target) or ![text](target).
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows every link to a file, and to a heading.
func TestLinks(t *testing.T) {
	headings := make(map[string][]string)
	all := pages(t)
	for _, p := range all {
		headings[p.path] = anchors(p.text)
	}
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := p.path
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), target))
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: %s leads nowhere", p.path, m[1])
			}
			if anchor != "" && !slices.Contains(headings[path], anchor) {
				t.Errorf("%s: %s has no heading #%s", p.path, path, anchor)
			}
		}
	}
}

// anchors are a page's headings as links name them.
func anchors(text string) (all []string) {
	odd := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(odd.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// TestExtracts looks for each block of Go in the file that it names.
func TestExtracts(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.kind != "go" {
				continue
			}
			if b.words[0] == "" {
				t.Errorf("%s:%d: from which file is this?", p.path, b.line)
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, b.words[0]))
			if err != nil {
				t.Errorf("%s:%d: %v", p.path, b.line, err)
			}
			if missing := extract(string(text), b.lines); missing != "" {
				t.Errorf("%s:%d: not in %s:\n%s", p.path, b.line, b.words[0], missing)
			}
		}
	}
}

// extract looks for lines in a text, whatever their indent, in this order and one right
// after the other; any lines may be where … stands. It returns what was not found.
func extract(text string, lines []string) (missing string) {
	have := strings.Split(text, "\n")
	for i := range have {
		have[i] = strings.TrimSpace(have[i])
	}
	for piece := range strings.SplitSeq(strings.Join(lines, "\n"), "…\n") {
		want := strings.Split(strings.TrimSpace(piece), "\n")
		for i := range want {
			want[i] = strings.TrimSpace(want[i])
		}
		at := -1
		for i := 0; i+len(want) <= len(have) && at < 0; i++ {
			if slices.Equal(have[i:i+len(want)], want) {
				at = i
			}
		}
		if at < 0 {
			return piece
		}
		have = have[at+len(want):]
	}
	return ""
}

func TestExtract(t *testing.T) {
	text := "func f() {\n\ta()\n\tb()\n\tc()\n}\n"
	for shown, want := range map[string]string{
		"a()\nb()": "", "func f() {\n…\nc()": "", "a()\nc()": "a()\nc()", "b()\n\t…\na()": "a()", "d()": "d()",
	} {
		if got := extract(text, strings.Split(shown, "\n")); got != want {
			t.Errorf("%q: got %q, want %q", shown, got, want)
		}
	}
}

// TestFenced wants commands in blocks that are run, not in indented text that nobody tries.
func TestFenced(t *testing.T) {
	typed := regexp.MustCompile(`^( {4,}|\t)(\$ |(peer|go|make|docker|kubectl|srun|sbatch|sudo|systemctl|git) \S)`)
	for _, p := range pages(t) {
		for i, line := range strings.Split(p.text, "\n") {
			if typed.MatchString(line) {
				t.Errorf("%s:%d: a command outside a console block: %s", p.path, i+1, strings.TrimSpace(line))
			}
		}
		for _, b := range p.blocks {
			if commands, _ := b.script(); b.kind == "sh" || b.kind == "bash" || b.kind == "console" && len(commands) == 0 {
				t.Errorf("%s:%d: a block of commands without a prompt", p.path, b.line)
			}
		}
	}
}
