// The meaning of an operation's data_seed: the bytes to write, and other arguments of calls.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "tests/crash/operation.h"

namespace siltfs::testing {

inline constexpr uint64_t kContents = 3;
inline constexpr uint64_t kParts = 16;  // places in a content where data may begin

// Returns a seed that stands for a part of a content. Seeds outside of the range of part seeds
// stand for kinds of data.
uint64_t PartSeed(uint64_t content, uint64_t part);

inline constexpr uint64_t kTexts = 3;
inline constexpr uint64_t kTextVersions = 6;

// Returns a seed that stands for a version of a text. The chunks of its versions resemble each
// other, and few are the same.
uint64_t VersionSeed(uint64_t text, uint64_t version);

// Returns the step's data: a part of a content, the beginning of a version of a text, zeros,
// compressible duplicate data, or incompressible unique data.
Bytes DataOf(const Operation& operation);

std::string XattrValue(uint64_t seed);
// Whether the seed stands for a default list of a directory, and not for an access list.
bool IsDefaultAcl(uint64_t seed);
// Returns an access control list that names at most two users. A list without names is equivalent
// to a mode.
std::string AclValue(uint64_t seed);
// Returns the mode of a special file, with its type.
uint32_t NodeMode(uint64_t seed);
uint64_t NodeDevice(uint64_t seed);

// How a snapshot is received.
enum class Transfer : uint8_t {
  kOneWay,
  kTwoWay,
  kResumed,    // cut short, and then resumed
  kCutShort,   // the receiver keeps what has arrived
  kAbandoned,  // cut short, and then discarded
};
Transfer TransferOf(uint64_t seed);
// Whether a transfer that is cut short is a two-way one.
bool IsCutTwoWay(uint64_t seed);
// Returns the name of the snapshot from which a step clones.
std::string SnapshotToClone(uint64_t seed);

}  // namespace siltfs::testing
