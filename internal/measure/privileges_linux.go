package measure

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// rootMayKeep are the capabilities that commands running as root keep: those that container engines leave to root, too. None
// of them opens a way out of namespaces and mounts.
var rootMayKeep = []int{
	unix.CAP_AUDIT_WRITE, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
	unix.CAP_NET_BIND_SERVICE, unix.CAP_SETFCAP, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SYS_CHROOT,
}

// dropPrivileges keeps the programs that the calling thread starts from gaining privileges; see capabilities(7). The thread
// keeps its own.
func dropPrivileges(account bool) (lacking []Unenforced) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		lacking = append(lacking, Unenforced{LimitPrivileges, "commands may gain privileges by programs such as sudo: " + err.Error()})
	}
	if os.Geteuid() != 0 {
		return lacking
	}
	for capability := range unix.CAP_LAST_CAP + 1 {
		if !account && slices.Contains(rootMayKeep, capability) {
			continue
		}
		// Fails for capabilities that this kernel does not know, and if the collector itself has lost the right.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0)
	}
	if !account {
		lacking = append(lacking, Unenforced{LimitAccount,
			"commands run as root and may change what root owns where they may write; give them an account of their own"})
	}
	return lacking
}
