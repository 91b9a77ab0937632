// Makes the page of `siltfs report` from the document of fs/control/survey_json.h.
//
// Thread-safety: pure functions. Errors: none; a key that is missing throws, as in nlohmann/json,
// so the caller checks the version of the document first.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace siltfs::report {

struct Circumstances {
  std::string version = {};  // of siltfs
  std::string health = {};   // "ok", or what is wrong, in a few words
  double made_at = 0;        // seconds since 1970, UTC
};

// All texts in the document must be UTF-8 without control characters.
std::string MakeStoreReport(const nlohmann::json& document, const Circumstances& circumstances);

}  // namespace siltfs::report
