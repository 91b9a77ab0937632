// Whether single records of the tables that snapshots show (fs/versions/version_key.h) are
// well-formed.
//
// Pure functions, safe to call from any thread. They accept any bytes.
#pragma once

#include <string_view>

namespace siltfs {

// Whether a record of such a table can have this key.
bool IsRecordKey(std::string_view key);
// Also whether the value of this key can be decoded.
bool IsRecord(std::string_view key, std::string_view value);

}  // namespace siltfs
