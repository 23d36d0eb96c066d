package wire

import (
	"fmt"
	"strings"
)

// CheckSlots returns an error for a lock name that cannot work on a cluster, because a name that
// [Prefix] or [Suffix] derived from the lock name is in another slot.
func CheckSlots(n string, related ...string) error {
	slot := Slot(n)
	for _, r := range related {
		if other := Slot(r); other != slot {
			return fmt.Errorf("name %q is in slot %d, but its key %q is in slot %d, which a cluster does "+
				"not allow; use a name without braces, or one with a complete hash tag such as {%s}",
				n, slot, r, other, strings.NewReplacer("{", "", "}", "").Replace(n))
		}
	}
	return nil
}

// Slot returns the cluster slot of a key: CRC16 (XMODEM) of its hash tag, or of the whole key if it
// has no hash tag, modulo 16384. The hash tag is the text between the first "{" and the first "}"
// after it, if not empty. Source: Redis Cluster specification, "Key distribution model" and "Hash
// tags".
func Slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}
