package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"peermesh/mesh"
)

// Placement is where the ranks of a launch run, and how they are looked after.
type Placement struct {
	NumMachines int      `name:"num-machines" default:"1" placeholder:"N" help:"Machines, each with --num-processes ranks, on each of which this command is given."`
	MachineID   int      `name:"machine-id" placeholder:"I" help:"Which of them this is, from 0."`
	Rendezvous  string   `placeholder:"FORM" help:"Where the machines meet: tcp://host:port of machine 0, file:///path that all share, lan or dht."`
	DHT         []string `name:"dht" sep:"none" placeholder:"ADDR" help:"With --rendezvous dht: multiaddr of a peer that serves the DHT; repeatable (the public one of IPFS)."`
	Machines    string   `placeholder:"FILE" help:"Start the ranks on these machines over ssh: one host a line, then slots=N if not --num-processes."`
	SSH         string   `name:"ssh" default:"ssh" placeholder:"COMMAND" help:"How to reach the --machines."`
	RemotePeer  string   `name:"remote-peer" default:"peer" placeholder:"PATH" help:"This program, on the --machines."`
	Slurm       bool     `help:"Read machines and rendezvous from Slurm: srun --ntasks-per-node=1 peer launch --slurm -n N."`
	K8s         bool     `name:"k8s" help:"Read this machine's number and the rendezvous from a Kubernetes Indexed Job; give --num-machines."`
	Remote      bool     `hidden:"" help:"This is a machine of another launch, which tells it the rest on stdin."`

	Min         int    `placeholder:"N" help:"Go on with this many ranks when others are lost, and let them in again."`
	Restart     string `default:"never" enum:"never,on-failure" help:"Whether a rank that fails is started again: never or on-failure."`
	MaxRestarts int    `name:"max-restarts" default:"3" placeholder:"N" help:"How often, each rank."`
	RankLogs    string `name:"rank-logs" placeholder:"DIR" help:"Write what each rank prints to DIR/rank-R.out and .err instead of here."`
	Tee         bool   `help:"With --rank-logs: print it here, too."`
	Pin         string `default:"auto" enum:"auto,always,never" help:"Give each rank cores of its own: auto, if there are two or more for each, always or never."`

	Command []string `arg:"" optional:"" passthrough:"" help:"A trainer to run instead of this program's own, after --. It reads its place by mesh.FromEnv."`

	world, first int // ranks of all machines, and the number of this machine's first
}

// maxRestarts bounds --max-restarts.
const maxRestarts = 1 << 20

func (l *Placement) validate(n int) error {
	switch {
	case l.NumMachines < 1 || l.NumMachines > mesh.MaxWorld:
		return fmt.Errorf("--num-machines is %d, want 1 to %d", l.NumMachines, mesh.MaxWorld)
	case l.MachineID < 0 || l.MachineID >= l.NumMachines && !l.Slurm && !l.K8s:
		return fmt.Errorf("--machine-id is %d, want 0 to --num-machines less 1, which is %d", l.MachineID, l.NumMachines-1)
	case n*l.NumMachines > mesh.MaxWorld:
		return fmt.Errorf("--num-machines × --num-processes is %d, want at most %d", n*l.NumMachines, mesh.MaxWorld)
	case l.Min < 0 || l.Min > n*l.NumMachines && l.Machines == "" && !l.Slurm:
		return fmt.Errorf("--min is %d, want 1 to the number of ranks, %d", l.Min, n*l.NumMachines)
	case l.MaxRestarts < 0 || l.MaxRestarts > maxRestarts:
		return fmt.Errorf("--max-restarts is %d, want 0 to %d", l.MaxRestarts, maxRestarts)
	case l.Tee && l.RankLogs == "":
		return errors.New("--tee is given without --rank-logs, the folder that gets a copy")
	case l.NumMachines > 1 && l.Rendezvous == "" && l.Machines == "" && !l.Slurm && !l.K8s:
		return errors.New("--num-machines is given without --rendezvous: say where the machines meet, as --rendezvous tcp://HOST:29500 with machine 0's name")
	}
	ways := 0
	for _, given := range []bool{l.Machines != "", l.Slurm, l.K8s, l.MachineID > 0 && l.Machines == ""} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return errors.New("--machines, --slurm, --k8s and --machine-id each say which machine this is: give one")
	}
	if err := checkDHT(l.DHT); err != nil || l.Rendezvous == "" {
		return err
	}
	if err := checkBootstrap(l.Rendezvous); err != nil {
		return fmt.Errorf("--rendezvous %s: %w", l.Rendezvous, err)
	}
	return nil
}

// settle reads from the scheduler's variables what no flag says.
func (l *Placement) settle(n int, getenv func(string) string) error {
	if l.Slurm || l.K8s {
		_, bootstrap, err := mesh.JobHost(getenv)
		if err != nil {
			return usagef("%w", err)
		}
		if l.Rendezvous == "" {
			l.Rendezvous = bootstrap
		}
		number := "JOB_COMPLETION_INDEX"
		if l.Slurm {
			number = "SLURM_NODEID"
			if l.NumMachines, err = variable(getenv, "SLURM_NNODES", 1, mesh.MaxWorld); err != nil {
				return err
			}
		}
		if l.MachineID, err = variable(getenv, number, 0, l.NumMachines-1); err != nil {
			return err
		}
	}
	if l.world == 0 {
		l.world, l.first = n*l.NumMachines, n*l.MachineID
	}
	if l.world > mesh.MaxWorld {
		return usagef("%d machines of %d ranks are %d, want at most %d", l.NumMachines, n, l.world, mesh.MaxWorld)
	}
	return nil
}

// variable is a number in the environment.
func variable(getenv func(string) string, name string, least, most int) (int, error) {
	n, err := strconv.Atoi(getenv(name))
	if err != nil || n < least || n > most {
		return 0, usagef("%s is %q, want a number from %d to %d", name, getenv(name), least, most)
	}
	return n, nil
}

// meets reports whether the ranks find each other without their launcher's help: when
// it knows not all of them, or not for all time.
func (l *Placement) meets() bool {
	return l.NumMachines > 1 || l.Restart == "on-failure" || len(l.Command) > 0
}

// strangerEnv tells a trainer its place, as mesh.FromEnv reads it; and, for those who
// know torchrun, which device of the machine is theirs.
func (l *launchCmd) strangerEnv(rank int, key, bootstrap string, listen []string) []string {
	env := map[string]string{
		mesh.EnvWorld: strconv.Itoa(l.world), mesh.EnvBootstrap: bootstrap, mesh.EnvMesh: l.Mesh,
		mesh.EnvWait: l.Wait.String(), mesh.EnvIdentity: key, mesh.EnvListen: strings.Join(listen, ","),
		"WORLD_SIZE": strconv.Itoa(l.world), "RANK": strconv.Itoa(l.first + rank),
		"LOCAL_RANK": strconv.Itoa(rank), "LOCAL_WORLD_SIZE": strconv.Itoa(l.Num),
	}
	if len(l.DHT) > 0 {
		env[mesh.EnvDHT] = strings.Join(l.DHT, ",")
	}
	if l.Min > 0 {
		env[mesh.EnvMin] = strconv.Itoa(l.Min)
	}
	if l.Transport != "all" {
		env[mesh.EnvTransports] = l.Transport
	}
	var all []string
	for _, v := range os.Environ() { // the last of two counts, but only for some programs
		if name, _, _ := strings.Cut(v, "="); env[name] == "" {
			all = append(all, v)
		}
	}
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// restartPause keeps a rank that fails at once from being started without rest.
const restartPause = 500 * time.Millisecond
