//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds an attack's wait for an answer.
const patience = 3 * time.Second

func dial(network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: patience}
	return dialer.DialContext(context.Background(), network, address)
}

// postgres asks for a session as the superuser, through the socket.
func postgres(t Targets) (string, error) {
	conn, err := dial("unix", t.Socket)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	var session []byte
	for _, word := range []string{"user", "postgres", "database", "postgres", ""} {
		session = append(append(session, word...), 0)
	}
	message := binary.BigEndian.AppendUint32(nil, uint32(8+len(session)))
	message = binary.BigEndian.AppendUint32(message, 3<<16) // version 3.0 of the protocol
	if _, err := conn.Write(append(message, session...)); err != nil {
		return "", err
	}
	answer := make([]byte, 9)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return "", err
	}
	if answer[0] == 'R' && binary.BigEndian.Uint32(answer[5:]) == 0 {
		return "a session of Postgres", nil
	}
	return "", fmt.Errorf("postgres answers %q", answer)
}

// ports connects to every port of the service.
func ports(t Targets) (string, error) {
	var tries []func() (string, error)
	for _, address := range append([]string{t.API, t.Temporal, t.UI}, t.Metrics...) {
		tries = append(tries, func() (string, error) {
			conn, err := dial("tcp", address)
			if err != nil {
				return "", err
			}
			return address, conn.Close()
		})
	}
	return anyOf(tries...)
}

// field encodes a field of a protocol buffer with a length: text or a message.
func field(number int, content []byte) []byte {
	return append(binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(content))), content...)
}

// call calls a method of Temporal without a token, in plain text and with TLS.
func (t Targets) call(method string, message []byte) (string, error) {
	return anyOf(
		func() (string, error) { return t.callOver("http", method, message) },
		func() (string, error) { return t.callOver("https", method, message) },
	)
}

func (t Targets) callOver(scheme, method string, message []byte) (string, error) {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	client := http.Client{Timeout: 2 * patience, Transport: &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
		scheme+"://"+t.Temporal+"/temporal.api.workflowservice.v1.WorkflowService/"+method, bytes.NewReader(append(body, message...)))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	request.Header.Set("Grpc-Timeout", "2S")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return "", err
	}
	status := response.Header.Get("Grpc-Status") + response.Trailer.Get("Grpc-Status")
	switch status {
	case "7", "16": // permission denied, unauthenticated
		return "", fmt.Errorf("%s: status %s, %s%s", method, status, response.Header.Get("Grpc-Message"), response.Trailer.Get("Grpc-Message"))
	case "":
		return "", fmt.Errorf("%s: %s without a status", method, response.Status)
	}
	return fmt.Sprintf("%s has been allowed: status %s, %d bytes", method, status, len(answer)), nil
}

func temporal(t Targets) (string, error) {
	namespace := field(1, []byte(t.Namespace))
	return anyOf(
		func() (string, error) { return t.call("ListWorkflowExecutions", namespace) },
		func() (string, error) { return t.call("ListNamespaces", nil) },
		func() (string, error) {
			return t.call("GetWorkflowExecutionHistory", append(namespace, field(2, field(1, []byte(t.Workflow)))...))
		},
	)
}

// temporalTask asks for a task of a collector.
func temporalTask(t Targets) (string, error) {
	message := append(field(1, []byte(t.Namespace)), field(2, field(1, []byte(t.TaskQueue)))...)
	message = append(message, field(3, []byte("attacker"))...)
	return anyOf(
		func() (string, error) { return t.call("PollActivityTaskQueue", message) },
		func() (string, error) { return t.call("PollWorkflowTaskQueue", message) },
	)
}

func temporalKill(t Targets) (string, error) {
	which := append(field(1, []byte(t.Namespace)), field(2, field(1, []byte(t.Workflow)))...)
	return anyOf(
		func() (string, error) { return t.call("RequestCancelWorkflowExecution", which) },
		func() (string, error) {
			return t.call("TerminateWorkflowExecution", append(which, field(3, []byte("harm"))...))
		},
	)
}

// ask makes a request as a program does, with further headers, and reaches what is answered with success.
func ask(method, url, body string, headers ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request) // follows no redirection
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return "", fmt.Errorf("%s %s: %s", method, url, response.Status)
	}
	return fmt.Sprintf("%s %s: %s", method, url, response.Status), nil
}

func temporalUI(t Targets) (string, error) {
	base := "http://" + t.UI + "/api/v1/namespaces/" + t.Namespace + "/workflows"
	return anyOf(
		func() (string, error) {
			conn, err := dial("unix", t.UISocket)
			if err != nil {
				return "", err
			}
			return "the socket of Temporal's Web UI", conn.Close()
		},
		func() (string, error) { return ask(http.MethodGet, base, "") },
		func() (string, error) {
			return ask(http.MethodPost, base+"/"+strings.ReplaceAll(t.Workflow, "/", "%2F")+"/terminate", `{"reason":"harm"}`, "Content-Type", "application/json")
		},
	)
}

// apiWrites calls every route that writes, without a token.
func apiWrites(t Targets) (string, error) {
	var tries []func() (string, error)
	for _, route := range t.Routes {
		method, path, _ := strings.Cut(route, " ")
		tries = append(tries, func() (string, error) {
			return ask(method, "http://"+t.API+path, `{}`, "Content-Type", "application/json")
		})
	}
	return anyOf(tries...)
}

func rawSockets(_ Targets) (string, error) {
	try := func(what string, domain, kind, protocol int) func() (string, error) {
		return func() (string, error) {
			fd, err := unix.Socket(domain, kind, protocol)
			if err != nil {
				return "", fmt.Errorf("%s: %w", what, err)
			}
			return what, unix.Close(fd)
		}
	}
	return anyOf(
		try("a raw socket", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		try("a packet socket", unix.AF_PACKET, unix.SOCK_RAW, 0),
		func() (string, error) {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return "", err
			}
			defer unix.Close(fd)
			request, err := unix.NewIfreq("lo")
			if err != nil {
				return "", err
			}
			if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
				return "", err
			}
			// The flags stay what they are.
			if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
				return "", errors.Join(errors.New("settings of an interface"), err)
			}
			return "settings of an interface", nil
		},
	)
}
