package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// A machine is where a number was measured, and when: without it the number says
// little.
type machine struct {
	cpu   string // empty where the system does not tell
	cores int    // that this process may use
	when  time.Time
}

// thisMachine asks the system.
func thisMachine() machine {
	m := machine{cores: runtime.NumCPU(), when: time.Now()}
	// Where there is no such file there is only less to say.
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.cpu = modelName(text)
	}
	return m
}

// modelName finds the processor in the text of /proc/cpuinfo, or nothing.
func modelName(cpuinfo []byte) string {
	for line := range bytes.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (m machine) String() string {
	cpu := m.cpu
	if cpu == "" {
		cpu = runtime.GOARCH
	}
	return fmt.Sprintf("%s, %d cores, %s/%s, %s, %s", cpu, m.cores, runtime.GOOS, runtime.GOARCH, runtime.Version(), m.when.Format("2 January 2006"))
}
