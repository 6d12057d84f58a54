package node

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t testing.TB, data string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(data), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

func TestReadSecret(t *testing.T) {
	key := strings.Repeat("\xab", 32)
	for _, x := range []struct{ file, want string }{
		{"0123456789abcdef", "0123456789abcdef"},
		{"0123456789abcdef\r\n", "0123456789abcdef"},
		{" 0123456789abcdef", " 0123456789abcdef"},
		{pskHeader + "\n/base16/\n" + strings.Repeat("ab", 32) + "\n", key},
		{pskHeader + "\n/bin/\n" + key, key},
	} {
		got, err := ReadSecret(write(t, x.file, 0o600))
		if err != nil || string(got) != x.want {
			t.Errorf("%q: %q, %v", x.file, got, err)
		}
	}
	for want, x := range map[string]struct {
		file string
		mode os.FileMode
	}{
		"a secret of 15 bytes can be guessed": {"0123456789abcde\n", 0o600},
		"a secret of 0 bytes":                 {"", 0o600},
		"can be read by others (mode 0644)":   {"0123456789abcdef", 0o644},
		"are too many":                        {strings.Repeat("x", maxSecret+1), 0o600},
		"holds no such key":                   {pskHeader + "\n/base16/\nabcd\n", 0o600},
	} {
		if _, err := ReadSecret(write(t, x.file, x.mode)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "node: ") {
			t.Errorf("%q: %v, want %q", x.file, err, want)
		}
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := ReadSecret(path); err == nil {
			t.Errorf("a secret from %s", path)
		}
	}
}

func TestDerive(t *testing.T) {
	if bytes.Equal(derive(ours, pskInfo), derive(ours, proofInfo)) || bytes.Equal(derive(ours, pskInfo), derive(theirs, pskInfo)) {
		t.Error("keys that are the same")
	}
}

func FuzzSecret(f *testing.F) {
	f.Add([]byte("0123456789abcdef\n"))
	f.Add([]byte(pskHeader + "\n/base64/\nq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		secret, err := ReadSecret(path)
		if err == nil && (len(secret) < MinSecret || len(secret) > maxSecret) {
			t.Errorf("%q: %d bytes", data, len(secret))
		}
	})
}
