// Either a value or the errno that stood in its way.
#pragma once

#include <utility>

namespace happy {

template <typename T>
class [[nodiscard]] result {
 public:
  result(T value)
      : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): `return value;`

  static result failure(int error) {
    result r{T{}};
    r.error_ = error;
    return r;
  }

  bool ok() const { return error_ == 0; }
  int error() const { return error_; }  // 0 when ok()
  T& value() { return value_; }
  const T& value() const { return value_; }

 private:
  T value_;
  int error_ = 0;
};

}  // namespace happy
