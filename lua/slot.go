package lua

import "strings"

// Slots is the number of slots of a cluster.
const Slots = 16384

// Slot returns the cluster slot of a key: CRC16 (XMODEM) of its hash tag, or of the whole key when
// it has none, modulo 16384. The hash tag is the text between the first "{" and the first "}" after
// it, if that is not empty. Source: the Redis Cluster specification, "Key distribution model" and
// "Hash tags".
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
	return crc % Slots
}
