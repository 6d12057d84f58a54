package deploy

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docker has TestDockerSteps run the steps that need no daemon, which takes minutes.
const docker = "PEERMESH_DOCKER"

// An instruction is a line of a Dockerfile.
type instruction struct {
	name string
	args []string
}

func dockerfile(t *testing.T) (all []instruction) {
	t.Helper()
	for line := range strings.SplitSeq(read(t, "docker/Dockerfile"), "\n") {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			all = append(all, instruction{words[0], words[1:]})
		}
	}
	return all
}

// TestDocker wants instructions that there are, files that are here, and a program in the
// image where its entry point looks for it.
func TestDocker(t *testing.T) {
	known := []string{"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "EXPOSE", "ENTRYPOINT", "CMD"}
	var stages, copied []string
	entry, from := "", 0
	for _, i := range dockerfile(t) {
		if !slices.Contains(known, i.name) || len(i.args) == 0 {
			t.Fatalf("what is %s %q?", i.name, i.args)
		}
		switch i.name {
		case "FROM":
			from++
			if len(i.args) == 3 && i.args[1] == "AS" {
				stages = append(stages, i.args[2])
			}
		case "COPY":
			sources, target := i.args[:len(i.args)-1], i.args[len(i.args)-1]
			if stage, ok := strings.CutPrefix(sources[0], "--from="); ok {
				if !slices.Contains(stages, stage) {
					t.Errorf("no stage is called %s", stage)
				}
				copied = append(copied, target)
				continue
			}
			for _, s := range sources {
				if _, err := os.Stat(filepath.Join("../..", s)); err != nil {
					t.Errorf("COPY: %v", err)
				}
			}
		case "ENTRYPOINT":
			entry = strings.Trim(i.args[0], `[]"`)
		}
	}
	if from != 2 || !path.IsAbs(entry) || !slices.Contains(copied, entry) {
		t.Errorf("%d stages; the entry point %q is not among %q", from, entry, copied)
	}
}

// TestDockerSteps does what RUN says in a copy of the tree, with what is built going
// elsewhere, and starts what comes out in an empty folder. Of this system it needs only
// what the image has: the C library.
func TestDockerSteps(t *testing.T) {
	if os.Getenv(docker) == "" {
		t.Skipf("builds without cgo: set %s", docker)
	}
	out := filepath.Join(t.TempDir(), "peer")
	for _, i := range dockerfile(t) {
		if i.name != "RUN" {
			continue
		}
		step := strings.ReplaceAll(strings.Join(i.args, " "), "-o /peer", "-o "+out)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", step)
		cmd.Dir = "../.."
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", step, err, text)
		}
	}
	cmd := exec.CommandContext(t.Context(), out, "launch", "--help")
	cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=/nowhere"}
	if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "--num-processes") {
		t.Errorf("%v\n%s", err, text)
	}
	text, err := exec.CommandContext(t.Context(), "ldd", out).CombinedOutput()
	if err != nil {
		t.Fatalf("ldd: %v\n%s", err, text)
	}
	base := regexp.MustCompile(`^\s*(linux-vdso|libc|libm|libdl|libpthread|libresolv|librt|/\S*/ld-linux\S*)\b`)
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		if !base.MatchString(line) {
			t.Errorf("the image lacks %s", strings.TrimSpace(line))
		}
	}
}
