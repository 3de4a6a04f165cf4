//go:build !linux

package syslog

import (
	"errors"
	"net"
)

// kernelDrops is of Linux alone.
func kernelDrops(*net.UDPConn) (drops, room uint32, err error) { return 0, 0, errors.ErrUnsupported }
