package mesh

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// A scheduler starts the processes of a job on the machines of a cluster.
type scheduler struct {
	job    string                          // the mesh's name; empty: no scheduler
	number string                          // the variable that counts the processes from 0
	host   func(e environ) (string, error) // of process 0
	port   int                             // of process 0, unless EnvPort says otherwise
}

// scheduler tells by the variables of each who has started this process.
func (e environ) scheduler() scheduler {
	switch {
	case e.get("SLURM_JOB_ID") != "":
		id := e.get("SLURM_JOB_ID")
		return scheduler{job: "slurm-" + id, number: "SLURM_PROCID", host: environ.slurmHost, port: jobPort(id)}
	case e.get("JOB_COMPLETION_INDEX") != "":
		job, _, _ := cutLast(e.get("HOSTNAME"), "-")
		return scheduler{job: job, number: "JOB_COMPLETION_INDEX", host: environ.podHost, port: DefaultPort}
	}
	return scheduler{}
}

// Jobs of one user may share a node, and then need different ports.
const (
	firstJobPort = 20000
	jobPorts     = 10000
)

func jobPort(id string) int {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return DefaultPort
	}
	return firstJobPort + int(n%jobPorts)
}

// slurmHost is the first node of the job.
func (e environ) slurmHost() (string, error) {
	name := "SLURM_JOB_NODELIST"
	list := e.get(name)
	if list == "" {
		return "", fmt.Errorf("mesh: %s is not set: start the program by srun, within a job", name)
	}
	hosts, err := Nodes(list)
	if err != nil {
		return "", fmt.Errorf("mesh: %s is %q: %w", name, list, err)
	}
	return hosts[0], nil
}

// podHost is the name that a headless service gives to the pod with index 0. The host
// name of a pod of an Indexed Job is that of the job, a dash and its index.
func (e environ) podHost() (string, error) {
	service := e.get(EnvService)
	if service == "" {
		return "", fmt.Errorf("mesh: %s is not set: it names the headless service, by which the pods of the job know each other", EnvService)
	}
	host, index := e.get("HOSTNAME"), e.get("JOB_COMPLETION_INDEX")
	job, ok := strings.CutSuffix(host, "-"+index)
	if !ok || job == "" {
		return "", fmt.Errorf("mesh: HOSTNAME is %q, want the job's name and -%s, as Kubernetes sets it", host, index)
	}
	return job + "-0." + service, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// JobHost is where process 0 of this Slurm or Kubernetes job listens, as tcp://HOST:PORT,
// and the job's name: for those who start several processes on each machine, and give
// them their places themselves. An error names the variable to set.
func JobHost(getenv func(name string) string) (job, bootstrap string, err error) {
	e := environ{get: getenv}
	from := e.scheduler()
	if from.host == nil {
		return "", "", fmt.Errorf("mesh: neither SLURM_JOB_ID nor JOB_COMPLETION_INDEX is set: this is no process of Slurm or of a Kubernetes Indexed Job")
	}
	host, err := from.host(e)
	if err != nil {
		return "", "", err
	}
	port, err := e.count(EnvPort, from.port, maxPort)
	return from.job, "tcp://" + net.JoinHostPort(host, strconv.Itoa(port)), err
}
