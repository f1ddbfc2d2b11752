// Package threehosts goes through the steps of docs/operations.md for three hosts with TLS
// everywhere. The hosts are network namespaces of this machine, joined by a bridge in a
// fourth one: no interface and no firewall outside of them is touched.
package threehosts
