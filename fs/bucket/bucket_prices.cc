#include "fs/bucket/bucket_prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace siltfs {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kThousand = 1e3;
constexpr double kHighestPrice = 1e6;
constexpr size_t kMostCurrencyLetters = 8;
constexpr std::string_view kCurrency = "currency";

struct Field {
  std::string_view name;
  double BucketPrices::*value;
};
constexpr std::array<Field, 4> kFields = {{{"put", &BucketPrices::put},
                                           {"get", &BucketPrices::get},
                                           {"storage", &BucketPrices::storage},
                                           {"egress", &BucketPrices::egress}}};

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

bool IsCurrency(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  return !text.empty() && text.size() <= kMostCurrencyLetters &&
         std::ranges::all_of(text, is_letter);
}

Result<double> ParsePrice(std::string_view text) {
  double price = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), price, std::chars_format::fixed);
  // The comparisons also refuse values that are no number.
  if (error == std::errc() && end == text.data() + text.size() && price >= 0 &&
      price <= kHighestPrice)
    return price;
  return Wrong(fmt::format("\"{}\" is no price; write a number such as 0.023", text));
}

// The shortest decimal that is read as the same number.
std::string FormatPrice(double price) {
  std::array<char, 400> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), price, std::chars_format::fixed);
  return error == std::errc() ? std::string(text.data(), end) : "0";
}

Status SetPrice(std::string_view item, BucketPrices& prices) {
  const size_t sign = item.find('=');
  const std::string_view name = item.substr(0, sign);
  const std::string_view value =
      sign == std::string_view::npos ? std::string_view() : item.substr(sign + 1);
  if (name == kCurrency) {
    if (!IsCurrency(value)) {
      return Wrong(fmt::format("\"{}\" is no currency; write a short name such as EUR", value));
    }
    prices.currency = value;
    return Status::Ok();
  }
  for (const Field& field : kFields) {
    if (field.name != name) continue;
    SILTFS_ASSIGN_OR_RETURN(prices.*field.value, ParsePrice(value));
    return Status::Ok();
  }
  return Wrong(fmt::format(
      "\"{}\" is not the price of a bucket; write NAME=PRICE with put, get, storage, egress or "
      "currency as the name",
      item));
}

}  // namespace

std::string FormatPrices(const BucketPrices& prices) {
  std::string text;
  for (const Field& field : kFields)
    text += fmt::format("{}={},", field.name, FormatPrice(prices.*field.value));
  return text + fmt::format("{}={}", kCurrency, prices.currency);
}

Result<BucketPrices> ParsePrices(std::string_view text, BucketPrices before) {
  for (;;) {
    const size_t comma = text.find(',');
    SILTFS_RETURN_IF_ERROR(SetPrice(text.substr(0, comma), before));
    if (comma == std::string_view::npos) return before;
    text.remove_prefix(comma + 1);
  }
}

BucketCost EstimateCost(const BucketPrices& prices, const ObjectStoreCounters& requests,
                        uint64_t stored_bytes) {
  const auto count = [](uint64_t number) { return static_cast<double>(number); };
  BucketCost cost;
  cost.storage_per_month = count(stored_bytes) / kGigabyte * prices.storage;
  cost.requests = count(requests.puts + requests.lists) / kThousand * prices.put +
                  count(requests.gets + requests.stats) / kThousand * prices.get;
  cost.egress = count(requests.received_bytes) / kGigabyte * prices.egress;
  return cost;
}

}  // namespace siltfs
