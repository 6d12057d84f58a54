package mnist

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// fakeGo in the environment makes this test binary a go command, of the
// behaviour that its value names.
const fakeGo = "PEERMESH_FAKE_GO"

func TestMain(m *testing.M) {
	if mode, ok := os.LookupEnv(fakeGo); ok {
		os.Exit(beGo(mode))
	}
	goleak.VerifyTestMain(m)
}

func beGo(mode string) int {
	if got := strings.Join(os.Args[1:], " "); got != "mod download -json "+module {
		fmt.Fprintln(os.Stderr, "called with", got)
		return 3
	}
	if here, err := os.ReadDir("."); err != nil || len(here) > 0 {
		fmt.Fprintln(os.Stderr, "not called in an empty folder:", here, err)
		return 3
	}
	kind, arg, _ := strings.Cut(mode, " ")
	switch kind {
	case "module": // arg is its folder
		json.NewEncoder(os.Stdout).Encode(map[string]string{"Dir": arg})
		return 0
	case "refused": // as the real one does without a network
		json.NewEncoder(os.Stdout).Encode(map[string]string{"Error": "module lookup\n\tdisabled"})
		return 1
	case "nonsense":
		fmt.Println("what?")
		return 0
	case "hang": // arg is where somebody waits for a call
		c, err := net.Dial("tcp", arg)
		if err == nil {
			_, err = io.Copy(io.Discard, c)
		}
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Fprintf(os.Stderr, "go: broken\n\n%s", strings.Repeat("é", maxReason))
	return 2
}

// encode makes an IDX file of unsigned bytes.
func encode(shape []int, data []byte) []byte {
	b := []byte{0, 0, idxUint8, byte(len(shape))}
	for _, d := range shape {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	return append(b, data...)
}

func pack(b []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(b) // to memory: cannot fail
	z.Close()
	return packed.Bytes()
}

// images and labels are made up, but of MNIST's form.
func images(n int) []byte {
	data := make([]byte, n*Pixels)
	for i := range data {
		data[i] = byte(i % 251)
	}
	return encode([]int{n, Side, Side}, data)
}

func labels(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i % Classes)
	}
	return encode([]int{n}, data)
}

// tiny is a data set of 12 training and 3 test images, as its four files. The
// caller may spoil its copy.
func tiny() map[string][]byte {
	files := maps.Clone(packed())
	for name, b := range files {
		files[name] = slices.Clone(b)
	}
	return files
}

var packed = sync.OnceValue(func() map[string][]byte {
	return map[string][]byte{
		"train-images-idx3-ubyte.gz": pack(images(12)),
		"train-labels-idx1-ubyte.gz": pack(labels(12)),
		"t10k-images-idx3-ubyte.gz":  pack(images(3)),
		"t10k-labels-idx1-ubyte.gz":  pack(labels(3)),
	}
})

// folder writes files into a folder.
func folder(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// listing names all that is in a folder, hidden or temporary files too.
func listing(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// pinned are the pins of some files, in a fixed order.
func pinned(files map[string][]byte) (pins []pin) {
	for name, b := range files {
		sum := sha256.Sum256(b)
		pins = append(pins, pin{name, int64(len(b)), hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(pins, func(a, b pin) int { return strings.Compare(b.name, a.name) })
	return pins
}
