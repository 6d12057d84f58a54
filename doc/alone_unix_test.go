//go:build unix

package doc

import (
	"os/exec"
	"syscall"
)

// alone has a command's time-out end all that it has started.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
