// Case and classes of code points as Python's str methods know them. Tables: unicode_case_tables.cpp (generated).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace text {

enum class CaseMapping : uint8_t { lower, upper, title };
enum class Property : uint8_t { lower, upper, title, decimal, digit, numeric, alpha, not_printable, case_ignorable };

// Code points first, first + stride, ... last; each maps to itself + delta.
struct CaseRow {
    uint32_t first, last, stride;
    int32_t delta;
};
// A code point that maps to several.
struct CaseSpecial {
    uint32_t code_point;
    const char* utf8;
};
struct PropertyRow {
    uint32_t first, last, stride;
};
std::span<const CaseRow> case_rows(CaseMapping mapping);
std::span<const CaseSpecial> case_specials(CaseMapping mapping);
std::span<const PropertyRow> property_rows(Property property);  // sorted by first, never within another

// Appends the mapped character as UTF-8.
void append_mapped(std::string& out, uint32_t code_point, CaseMapping mapping);
bool has_property(uint32_t code_point, Property property);

}  // namespace text
