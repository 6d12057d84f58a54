package logger

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// maxOpen bounds how many names are tried for a new file.
const maxOpen = 1000

// TensorBoard writes scalars to an event file.
type TensorBoard struct {
	f *os.File
}

// OpenTensorBoard makes a new event file in a folder, which it makes if there is none.
// Runs that TensorBoard should compare are in folders of their own, below the one it is
// started with.
func OpenTensorBoard(dir string) (*TensorBoard, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("logger: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	now := time.Now()
	for n := range maxOpen { // as another run may begin in the same second
		name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%d", now.Unix(), host, os.Getpid(), n)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("logger: %w", err)
		}
		t := &TensorBoard{f}
		if err := t.write(versionEvent(seconds(now))); err != nil {
			f.Close()
			return nil, err
		}
		return t, nil
	}
	return nil, fmt.Errorf("logger: %s has %d event files of this second", dir, maxOpen)
}

// Name is the file's.
func (t *TensorBoard) Name() string { return t.f.Name() }

// Log writes one event. Values are float32 there.
func (t *TensorBoard) Log(step int64, metrics map[string]float64) error {
	return t.write(scalarEvent(seconds(time.Now()), step, metrics))
}

func (t *TensorBoard) write(event []byte) error {
	if _, err := t.f.Write(appendRecord(nil, event)); err != nil {
		return fmt.Errorf("logger: %w", err)
	}
	return nil
}

// Close closes the file.
func (t *TensorBoard) Close() error {
	if err := t.f.Close(); err != nil {
		return fmt.Errorf("logger: %w", err)
	}
	return nil
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
