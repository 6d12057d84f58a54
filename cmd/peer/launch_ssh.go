package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"peermesh/mesh"
)

// A site is a line of the --machines file.
type site struct {
	host  string // as ssh takes it: perhaps user@host
	slots int
}

// An errand is what a launcher tells the one on another machine, on its stdin, which
// stays open as long as it lives.
type errand struct {
	Launch       *launchCmd
	World, First int
	Dir          string // to work in
}

// errLauncherLost is why the ranks of a machine end when the launcher elsewhere did.
var errLauncherLost = errors.New("the launcher on the other machine is gone")

// readMachines reads hosts, one a line, each with slots=N if it has not the usual
// number of ranks. What follows # is for people.
func readMachines(in io.Reader, usual int) (all []site, err error) {
	total, n := 0, 0
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		n++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		m := site{words[0], usual}
		if strings.HasPrefix(m.host, "-") {
			return nil, fmt.Errorf("line %d: %q is no host", n, m.host)
		}
		for _, word := range words[1:] {
			number, ok := strings.CutPrefix(word, "slots=")
			if m.slots, err = strconv.Atoi(number); !ok || err != nil || m.slots < 1 {
				return nil, fmt.Errorf("line %d: %q is not slots=N", n, word)
			}
		}
		if total += m.slots; total > mesh.MaxWorld || m.slots > mesh.MaxWorld {
			return nil, fmt.Errorf("more than %d ranks", mesh.MaxWorld)
		}
		all = append(all, m)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("there is no host in it")
	}
	return all, nil
}

// overSSH has a launcher on each machine, and stays until all have ended.
func (l *launchCmd) overSSH(p *process) error {
	f, err := os.Open(l.Machines)
	if err != nil {
		return usagef("--machines: %w", err)
	}
	machines, err := readMachines(f, l.Num)
	if err := errors.Join(err, f.Close()); err != nil {
		return usagef("--machines %s: %w", l.Machines, err)
	}
	errands, err := l.errands(machines)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // on Linux the children are killed when this thread ends
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	r := &launch{crew: crew{of: func(i int) string { return fmt.Sprintf("machine %d (%s)", i, machines[i].host) }}}
	con := new(console)
	for i, e := range errands {
		if err := r.send(l.sshCommand(machines[i], e.Launch.Num), con, p, i, e); err != nil {
			cancel(err)
			break
		}
	}
	return r.wait(ctx)
}

// errands divide the work among machines; the first one's name is the rendezvous,
// unless the flags say otherwise.
func (l *launchCmd) errands(machines []site) (all []errand, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	world := 0
	for _, m := range machines {
		world += m.slots
	}
	if l.Min > world {
		return nil, usagef("--min is %d, want 1 to the number of ranks, %d", l.Min, world)
	}
	meet := l.Rendezvous
	if meet == "" {
		_, host, found := strings.Cut(machines[0].host, "@")
		if !found {
			host = machines[0].host
		}
		meet = fmt.Sprintf("tcp://%s:%d", host, mesh.DefaultPort)
	}
	first := 0
	for i, m := range machines {
		one := *l
		one.Machines, one.Rendezvous, one.NumMachines, one.MachineID, one.Num = "", meet, len(machines), i, m.slots
		all = append(all, errand{Launch: &one, World: world, First: first, Dir: dir})
		first += m.slots
	}
	return all, nil
}

// sshCommand starts the launcher of a machine.
func (l *launchCmd) sshCommand(m site, n int) *exec.Cmd {
	words := strings.Fields(l.SSH)
	return exec.Command(words[0], append(words[1:], m.host, commandLine([]string{l.RemotePeer, "launch", "--remote", "-n", strconv.Itoa(n)}))...)
}

// send starts a machine's launcher and gives it its errand. Its lines have prefixes
// already.
func (r *launch) send(cmd *exec.Cmd, con *console, p *process, i int, e errand) error {
	out, errs := con.writer(p.stdout, "", false), con.writer(p.stderr, "", false)
	cmd.Stdout, cmd.Stderr = out, errs
	r.outputs = append(r.outputs, out, errs)
	stdin, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	r.tethers = append(r.tethers, to)
	cmd.Stdin = stdin
	if err := r.enlist(i, cmd); err != nil {
		return err
	}
	return sendLine(to, e)
}

// take is overSSH's other end: it reads the errand, and ends when the launcher that
// sent it does. The goroutine that waits for that lives as long as the process.
func (l *launchCmd) take(p *process, stdin io.Reader) (*process, error) {
	d := json.NewDecoder(stdin)
	var e errand
	if err := d.Decode(&e); err != nil || e.Launch == nil {
		return nil, usagef("--remote is for the launcher on another machine: there is no errand on stdin")
	}
	*l = *e.Launch
	l.world, l.first = e.World, e.First
	if err := os.Chdir(e.Dir); err != nil {
		return nil, usagef("this machine lacks the folder that the launch was started in: %w", err)
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	go func() {
		_ = d.Decode(&struct{}{}) // nothing more is sent: this returns at the end
		cancel(errLauncherLost)
	}()
	return &process{ctx, p.stdout, p.stderr}, nil
}
