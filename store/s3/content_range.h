// Checks that the reply to a request for a range has exactly this range, of the right version.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/s3/http_client.h"

namespace siltfs {

struct ContentRange {
  uint64_t begin = 0;
  uint64_t end = 0;    // behind the last byte
  uint64_t total = 0;  // of the object
};

// "bytes 0-99/1000". nullopt for anything else.
std::optional<ContentRange> ParseContentRange(std::string_view text);

struct WantedRange {
  std::string_view version;  // empty: any
  uint64_t offset = 0;
  uint64_t size = 0;  // greater than 0
};

// What is wrong with a reply with a status of 2xx or 416 and a body of `received` bytes; empty if
// nothing is. 416 is right if the range begins behind the end of the object.
std::string FaultOfRange(const HttpReply& reply, const WantedRange& wanted, uint64_t received);

}  // namespace siltfs
