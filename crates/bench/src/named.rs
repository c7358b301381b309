//! Defines a macro for enums whose variants are named on the command line and in reports.

/// Defines an enum with `ALL`, `name`, [`std::fmt::Display`] and [`std::str::FromStr`], from a text
/// for each variant.
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All variants, in the order of the rows of a table.
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Returns the name on the command line and in reports.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(name: &str) -> std::result::Result<Self, String> {
                let found = Self::ALL.into_iter().find(|variant| variant.name() == name);
                found.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::name).join(", ")))
            }
        }
    };
}

pub(crate) use named;
