// Objects in a bucket: byte strings by key, which are put as a whole, read in ranges, listed and
// removed. This is what services like S3, MinIO and Ceph RGW offer, and no more: there are neither
// appends nor renames.
//
// clang-format off
//   implementation        objects
//   S3ObjectStore         a service that speaks the protocol of S3 (store/s3)
//   MemoryObjectStore     memory, with faults and latency, for tests and tools
// clang-format on
//
// Versions: each content of an object has a version, an opaque text that the service gives (an
// ETag). Equal contents of a key may have equal versions.
//
// Consistency: linearizable per key. A read, a Stat or a List that begins after a Put or Remove has
// returned shows its effect. Of several conditional Puts of a key at the same time, at most one
// succeeds.
//
// Durability: on return of OK, the effect of Put and Remove survives a crash of this machine and of
// the service, as far as the service promises that.
//
// Thread-safety: every call from any thread. A call blocks until it has an answer, its deadline has
// passed, or Interrupt was called.
//
// Integrity: the implementation gives each request's body a checksum that the service verifies, and
// verifies lengths and, for whole objects, the checksum that it stored with the object. For ranges
// it guarantees only that they come from the version asked for; callers verify the bytes.
//
// Errors: a Status with the key and the cause, for reads also with the offset.
// clang-format off
//   kNotFound        there is no such object, or (with a sentence of its own) no such bucket
//   kAlreadyExists   Put with kIfAbsent: the object exists
//   kStale           Put with kIfVersion, Read with a version: the object has another version, or is
//                    gone
//   kNoSpace         the bucket is full; nothing was changed
//   kAccessDenied    the credentials are wrong, have expired, or lack a permission; the clock is wrong
//   kInterrupted     Interrupt was called
//   kCorruption      a whole object does not have the checksum that was stored with it
//   kIoError         no usable answer before the deadline, with the last cause
// clang-format on
// After kIoError and kInterrupted, a Put or Remove may have taken effect, or may still do so.
//
// Ownership: sources and outputs are the caller's, and must outlive the call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct ObjectInfo {
  std::string key;
  uint64_t size = 0;  // in bytes
  std::string version;
};

// When a Put may take effect.
struct PutCondition {
  enum class Kind : uint8_t { kAlways, kIfAbsent, kIfVersion };

  static PutCondition Always() { return {}; }
  static PutCondition IfAbsent() { return {Kind::kIfAbsent, {}}; }
  static PutCondition IfVersion(std::string version) {
    return {Kind::kIfVersion, std::move(version)};
  }

  Kind kind = Kind::kAlways;
  std::string version;  // for kIfVersion
};

struct ObjectPage {
  std::vector<ObjectInfo> objects;  // in the order of the bytes of their keys
  bool more = false;                // there are further objects behind the last one
};

// What the calls have cost since the store was opened. Retries count as requests.
struct ObjectStoreCounters {
  uint64_t puts = 0;
  uint64_t gets = 0;
  uint64_t stats = 0;
  uint64_t lists = 0;
  uint64_t removes = 0;
  uint64_t retries = 0;
  uint64_t failures = 0;    // calls that returned kIoError, kAccessDenied, kCorruption or kNoSpace
  uint64_t sent_bytes = 0;  // of bodies
  uint64_t received_bytes = 0;  // of bodies

  bool operator==(const ObjectStoreCounters&) const = default;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // The address of all objects, for messages: "s3://NAME/PREFIX". Contains no credentials.
  virtual const std::string& name() const = 0;

  // Puts all bytes of the file as one object, and returns its version. Reads the file piece by
  // piece and may read it twice, so it must not change meanwhile. kAlreadyExists, kStale, kNoSpace.
  // If the answer to a conditional Put is lost, the call finds out whether its own content is
  // there; if so, it returns OK.
  virtual Result<std::string> PutFile(const std::string& key, const ReadableFile& content,
                                      const PutCondition& condition) = 0;
  // The same for bytes in memory; for small objects.
  virtual Result<std::string> Put(const std::string& key, ByteView content,
                                  const PutCondition& condition) = 0;

  // Reads a whole object of at most `limit` bytes, and its version into `version` if that is not
  // null. Verifies its checksum. kNotFound; kFileTooLarge beyond the limit.
  virtual Result<Bytes> Get(const std::string& key, uint64_t limit, std::string* version) = 0;
  // Reads out.size() bytes of this version from `offset` on, fewer only at the end of the object;
  // returns their number. An empty version is any version. kNotFound, kStale.
  virtual Result<size_t> Read(const std::string& key, std::string_view version, uint64_t offset,
                              MutableByteView out) = 0;
  // Size and version. kNotFound.
  virtual Result<ObjectInfo> Stat(const std::string& key) = 0;

  // Removes an object. OK if there is no such object.
  virtual Status Remove(const std::string& key) = 0;

  // The objects whose keys begin with `prefix` and come after the key `after`, at most `limit` (and
  // at most 1,000).
  virtual Result<ObjectPage> List(const std::string& prefix, const std::string& after,
                                  size_t limit) = 0;

  // Ends running calls, and fails later ones, with kInterrupted. For the end of the process.
  virtual void Interrupt() = 0;
  // Ends running calls of Read, and fails later ones, with kInterrupted. For the end of a mount
  // while the bucket does not answer: what is to be put can still be put.
  virtual void InterruptReads() = 0;

  virtual ObjectStoreCounters Counters() const = 0;
};

}  // namespace siltfs
