//! Small programs to copy from. Each is run as a test.

#[cfg(test)]
macro_rules! programs {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name;

            #[test]
            fn $name() -> Result<(), Box<dyn std::error::Error>> {
                $name::main()
            }
        )+
    };
}

#[cfg(test)]
programs![audit_embeddings, audit_predictions, train_own_dataset];
