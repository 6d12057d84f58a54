// Package deploy holds the files by which others start peers, and checks them as far as
// that can be done without a cluster.
package deploy

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"peermesh/internal/programs"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A manifest is what the test looks at of a Kubernetes object.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		ClusterIP                string `yaml:"clusterIP"`
		PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
		Selector                 map[string]string
		Ports                    []struct{ Port int }
		CompletionMode           string `yaml:"completionMode"`
		Completions, Parallelism int
		Template                 struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Subdomain, RestartPolicy string
				Containers               []struct {
					Args []string
					Env  []struct{ Name, Value string }
				}
			}
		}
	}
}

// TestKubernetes wants the service to be that of the job's pods, and the launcher to be
// told of it and of their number.
func TestKubernetes(t *testing.T) {
	var all []manifest
	for d := yaml.NewDecoder(strings.NewReader(read(t, "kubernetes/train.yaml"))); ; {
		var m manifest
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	if len(all) != 2 || all[0].Kind != "Service" || all[1].Kind != "Job" || all[1].APIVersion != "batch/v1" {
		t.Fatalf("%+v", all)
	}
	service, job := all[0], all[1].Spec
	pod := job.Template.Spec
	if service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses || len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 29500 {
		t.Errorf("the service is not headless, or too late: %+v", service)
	}
	for name, value := range service.Spec.Selector {
		if job.Template.Metadata.Labels[name] != value {
			t.Errorf("the service selects %s=%s, which the pods are not", name, value)
		}
	}
	if job.CompletionMode != "Indexed" || job.Completions != job.Parallelism || pod.Subdomain != service.Metadata.Name || len(pod.Containers) != 1 {
		t.Errorf("the job is %+v", job)
	}
	c := pod.Containers[0]
	if len(c.Env) != 1 || c.Env[0].Name != "PEERMESH_SERVICE" || c.Env[0].Value != service.Metadata.Name {
		t.Errorf("the environment is %v", c.Env)
	}
	if i := slices.Index(c.Args, "--num-machines"); i < 0 || c.Args[i+1] != "4" || job.Completions != 4 {
		t.Errorf("%d pods are started by %v", job.Completions, c.Args)
	}
}

// TestSlurm has the shell read the script.
func TestSlurm(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	if out, err := exec.CommandContext(t.Context(), bash, "-n", "slurm/train.sbatch").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSystemd asks systemd about the unit, with a program in the place of peer.
func TestSystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	unit := filepath.Join(t.TempDir(), "peer@run.service")
	text := strings.ReplaceAll(read(t, "systemd/peer@.service"), "/usr/local/bin/peer", "/bin/true")
	text = strings.ReplaceAll(text, "Documentation=man:peer(1)\n", "")
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput(); err != nil || strings.Contains(string(out), unit) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestVariables wants each variable of a unit's command to be in the example.
func TestVariables(t *testing.T) {
	env := read(t, "systemd/example.env")
	for _, m := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(read(t, "systemd/peer@.service"), -1) {
		if m[1] != "STATE_DIRECTORY" && !strings.Contains(env, m[1]+"=") {
			t.Errorf("example.env lacks %s", m[1])
		}
	}
}

// TestFlags asks peer whether it knows the flags that the files give it.
func TestFlags(t *testing.T) {
	dir, known := t.TempDir(), make(map[string]bool)
	if err := programs.Put(t.Context(), dir, "peermesh/cmd/peer"); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"train", "launch"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "peer"), verb, "--help").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, flag := range regexp.MustCompile(`--[a-z0-9][-a-z0-9]*`).FindAllString(string(out), -1) {
			known[flag] = true
		}
	}
	given := regexp.MustCompile(`--[a-z][-a-z0-9]*`)
	for path, cut := range map[string]string{
		"slurm/train.sbatch": "srun peer", "systemd/peer@.service": "ExecStart=", "kubernetes/train.yaml": "args:",
	} {
		_, command, found := strings.Cut(read(t, path), cut)
		if path != "slurm/train.sbatch" {
			command, _, _ = strings.Cut(command, "\n")
		}
		flags := given.FindAllString(command, -1)
		if !found || len(flags) == 0 {
			t.Errorf("%s gives no flags", path)
		}
		for _, flag := range flags {
			if !known[flag] {
				t.Errorf("%s gives %s, which peer does not know", path, flag)
			}
		}
	}
}

// TestPages wants a page in each folder.
func TestPages(t *testing.T) {
	folders, err := filepath.Glob("*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if info, err := os.Stat(f); err == nil && info.IsDir() {
			if _, err := os.Stat(filepath.Join(f, "README.md")); err != nil {
				t.Error(err)
			}
		}
	}
}
