// The keys of record versions: values that metadata records had when a snapshot was made.
//
// A *version* of the key K for snapshot n has the value of K that snapshot n shows, if a later
// commit has changed K. It serves every snapshot after `born`, up to and including n. `born` is the
// newest snapshot that is older than the value (0: the value may be older than all snapshots).
//
//   table   key                                             value
//   y       K, escaped; ~n (8)                              1 byte: 1 and the value, or 0: absent
//   z       n (8), born (8), K                              empty
//
// Numbers are big-endian. In `y`, the byte 0 of K becomes 00 FF, and 00 01 ends K. So the keys of
// `y` sort by K, and the versions of K from the newest snapshot to the oldest one. `z` lists the
// versions by the snapshot that they were kept for; the deletion of a snapshot finds in it what it
// frees.
//
// All versions that were kept for one snapshot have keys of one lineage (fs/records/lineage.h), and
// each lineage has its own snapshots. "The newest snapshot" is the newest one of the key's lineage.
//
// Pure functions, safe to call from any thread. The Parse functions accept any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fs/records/lineage.h"

namespace siltfs {

// The snapshots of a store are numbered from 1 in the order in which they are made. No number is
// used twice.
using SnapshotNumber = uint64_t;

// Whether snapshots show older versions of this key: of inodes, names, cookies, extended attributes
// and overlays. Sets `inode` to the inode that the key belongs to.
bool IsVersionedKey(std::string_view key, uint64_t& inode);

std::string VersionKey(std::string_view key, SnapshotNumber snapshot);
struct VersionKeyParts {
  std::string key;
  SnapshotNumber snapshot = 0;
};
std::optional<VersionKeyParts> ParseVersionKey(std::string_view version_key);
// Not greater than the version keys of `key` and of all greater keys; greater than those of all
// smaller keys.
std::string FirstVersionKey(std::string_view key);
// Where the version keys of this key end. Greater than its version keys, and not greater than those
// of all greater keys.
std::string EndOfVersionKeys(std::string_view key);
// Where the version keys of all keys end.
std::string EndOfVersionKeys();

std::string EncodeVersion(const std::optional<std::string>& value);
// The inner optional is empty if the key was absent; the outer one is empty for malformed bytes.
std::optional<std::optional<std::string_view>> DecodeVersion(std::string_view version);

std::string VersionListKey(SnapshotNumber snapshot, SnapshotNumber born, std::string_view key);
struct VersionListKeyParts {
  SnapshotNumber snapshot = 0;
  SnapshotNumber born = 0;
  LineageNumber lineage = kLiveLineage;  // of the key; kLiveLineage if it is no versioned key
  std::string_view key;
};
std::optional<VersionListKeyParts> ParseVersionListKey(std::string_view list_key);

}  // namespace siltfs
